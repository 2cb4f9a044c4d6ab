"""Lua of the event log.

What the keys hold, and the functions that all scripts share, are in `streamer.store.redis_scripts`.
"""

from __future__ import annotations

from typing import Final

__all__ = ["LOG"]

# KEYS lease head events life lives ; ARGV token body max_events, then what was seen
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
local life = checked_life(KEYS[4], KEYS[5], {unpack(ARGV, 4)})
count_append(KEYS[4], KEYS[5], life)
seq = seq + 1
redis.call('XADD', KEYS[3], whole(seq) .. '-0', 't', whole(now), 'b', ARGV[2])
redis.call('HSET', KEYS[2], 'seq', whole(seq), 'time_ms', whole(now))
redis.call('PEXPIREAT', KEYS[3], whole(now + retain_ms))
redis.call('PUBLISH', KEYS[3], whole(seq))
return with_life({'ok', seq}, life)
"""

# KEYS head events life lives ; ARGV after_seq limit, then what was seen
_READ = """
local facts = redis.call('HMGET', KEYS[1], 'seq', 'retain_ms')
if not facts[1] then return {'unknown'} end
local head = tonumber(facts[1])
local life = checked_life(KEYS[3], KEYS[4], {unpack(ARGV, 3)})
local first = first_kept(KEYS[2], head, tonumber(facts[2]), now_ms())
local from = math.max(first, tonumber(ARGV[1]) + 1)
local entries = {}
if tonumber(ARGV[2]) > 0 and from <= head then
  entries = redis.call('XRANGE', KEYS[2], whole(from) .. '-0', '+', 'COUNT', ARGV[2])
end
return with_life({'ok', first, head, entries}, life)
"""

# KEYS head life lives ; ARGV what was seen
_HEAD = """
local seq = redis.call('HGET', KEYS[1], 'seq')
if not seq then return {'unknown'} end
local life = checked_life(KEYS[2], KEYS[3], ARGV)
return with_life({'ok', tonumber(seq)}, life)
"""

# KEYS life lives ; ARGV what was seen
_EPOCH = """
local life = checked_life(KEYS[1], KEYS[2], ARGV)
return with_life({'ok'}, life)
"""

LOG: Final[dict[str, str]] = {
    "append": _APPEND,
    "read": _READ,
    "head": _HEAD,
    "epoch": _EPOCH,
}
"""Name -> Lua."""
