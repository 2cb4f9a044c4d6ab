"""Lua of leases, status and presence.

What the keys hold, and the functions that all scripts share, are in `streamer.store.redis_scripts`.
"""

from __future__ import annotations

from typing import Final

__all__ = ["LEASES"]

# KEYS registry lease ; ARGV stream token_and_owner ttl_ms
_ACQUIRE = """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return {'unknown'} end
local held = redis.call('GET', KEYS[2])
if held then return {'held', held} end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return {'ok'}
"""

# KEYS lease ; ARGV token ttl_ms
_RENEW = """
if not holds(KEYS[1], ARGV[1]) then return {'lost'} end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {'ok'}
"""

# KEYS lease ; ARGV token
_RELEASE = """
if holds(KEYS[1], ARGV[1]) then redis.call('DEL', KEYS[1]) end
return {'ok'}
"""

# KEYS ids ; ARGV key_begin
_HOLDERS = """
local found = {'ok'}
for _, stream in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local held = redis.call('GET', ARGV[1] .. '{' .. stream .. '}:lease')
  if held then
    found[#found + 1] = stream
    found[#found + 1] = held
  end
end
return found
"""

# KEYS lease status ; ARGV token body ttl_ms
_PUT_STATUS = """
if not holds(KEYS[1], ARGV[1]) then return {'lost'} end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return {'ok'}
"""

# KEYS bodies ends ; ARGV replica body ttl_ms
_ANNOUNCE = """
local now = now_ms()
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', whole(now))) do
  redis.call('HDEL', KEYS[1], gone)
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', whole(now))
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], whole(now + ARGV[3]), ARGV[1])
local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2]
redis.call('PEXPIREAT', KEYS[1], whole(last))
redis.call('PEXPIREAT', KEYS[2], whole(last))
return {'ok'}
"""

# KEYS bodies ends
_PRESENT = """
local found = {'ok'}
for _, replica in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. whole(now_ms()), '+inf')) do
  found[#found + 1] = redis.call('HGET', KEYS[1], replica)
end
return found
"""

LEASES: Final[dict[str, str]] = {
    "acquire": _ACQUIRE,
    "renew": _RENEW,
    "release": _RELEASE,
    "holders": _HOLDERS,
    "put_status": _PUT_STATUS,
    "announce": _ANNOUNCE,
    "present": _PRESENT,
}
"""Name -> Lua."""
