"""Lua of the event log.

What the keys hold, and the functions that all scripts share, are in `streamer.store.redis_scripts`.
"""

from __future__ import annotations

from typing import Final

__all__ = ["LOG"]

# KEYS lease head events epoch ; ARGV token body max_events known_epoch known_seq new_epoch
_APPEND = """
if not holds(KEYS[1], ARGV[1]) then return {'lost'} end
local facts = redis.call('HMGET', KEYS[2], 'seq', 'retain_ms', 'time_ms')
local seq, retain_ms = tonumber(facts[1]), tonumber(facts[2])
local now = math.max(now_ms(), tonumber(facts[3] or '0'))
local first, oldest = first_kept(KEYS[3], seq, retain_ms, now)
first = math.max(first, seq + 2 - tonumber(ARGV[3]))
if oldest < first and oldest <= seq then
  redis.call('XTRIM', KEYS[3], 'MINID', '=', whole(first) .. '-0')
end
local epoch = redis.call('GET', KEYS[4])
local is_behind = epoch == ARGV[4] and seq < tonumber(ARGV[5])
if is_behind or not epoch then
  epoch = ARGV[6]
  redis.call('SET', KEYS[4], epoch)
end
seq = seq + 1
redis.call('XADD', KEYS[3], whole(seq) .. '-0', 't', whole(now), 'b', ARGV[2])
redis.call('HSET', KEYS[2], 'seq', whole(seq), 'time_ms', whole(now))
redis.call('PEXPIREAT', KEYS[3], whole(now + retain_ms))
redis.call('PUBLISH', KEYS[3], whole(seq))
return {'ok', seq, epoch}
"""

# KEYS head events epoch ; ARGV after_seq limit known_epoch known_seq new_epoch
_READ = """
local facts = redis.call('HMGET', KEYS[1], 'seq', 'retain_ms')
if not facts[1] then return {'unknown'} end
local head = tonumber(facts[1])
local epoch = redis.call('GET', KEYS[3])
if not epoch or (epoch == ARGV[3] and head < tonumber(ARGV[4])) then
  epoch = ARGV[5]
  redis.call('SET', KEYS[3], epoch)
end
local first = first_kept(KEYS[2], head, tonumber(facts[2]), now_ms())
local from = math.max(first, tonumber(ARGV[1]) + 1)
local entries = {}
if tonumber(ARGV[2]) > 0 and from <= head then
  entries = redis.call('XRANGE', KEYS[2], whole(from) .. '-0', '+', 'COUNT', ARGV[2])
end
return {'ok', epoch, first, head, entries}
"""

# KEYS head
_HEAD = """
local seq = redis.call('HGET', KEYS[1], 'seq')
if not seq then return {'unknown'} end
return {'ok', tonumber(seq)}
"""

# KEYS epoch ; ARGV new_epoch
_EPOCH = """
redis.call('SET', KEYS[1], ARGV[1], 'NX')
return {'ok', redis.call('GET', KEYS[1])}
"""

LOG: Final[dict[str, str]] = {
    "append": _APPEND,
    "read": _READ,
    "head": _HEAD,
    "epoch": _EPOCH,
}
"""Name -> Lua."""
