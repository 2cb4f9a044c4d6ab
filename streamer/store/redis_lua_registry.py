"""Lua of the registry.

What the keys hold, and the functions that all scripts share, are in `streamer.store.redis_scripts`.
"""

from __future__ import annotations

from typing import Final

__all__ = ["REGISTRY"]

# KEYS registry wanted ids changes life deleted forgotten head events
# ARGV stream spec wanted max_streams retain_ms new_epoch
_CREATE = """
local stream = ARGV[1]
local known = redis.call('HGET', KEYS[1], stream)
if known then return {'known', known, redis.call('HGET', KEYS[2], stream)} end
if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[4]) then return {'full'} end
life_of(KEYS[5], ARGV[6])
redis.call('HSET', KEYS[1], stream, ARGV[2])
redis.call('HSET', KEYS[2], stream, ARGV[3])
redis.call('ZADD', KEYS[3], 0, stream)
redis.call('ZREM', KEYS[6], stream)
redis.call('HSETNX', KEYS[8], 'seq', redis.call('GET', KEYS[7]) or '0')
redis.call('HSET', KEYS[8], 'retain_ms', ARGV[5])
local newest_ms = redis.call('HGET', KEYS[8], 'time_ms')
if newest_ms then redis.call('PEXPIREAT', KEYS[9], whole(newest_ms + ARGV[5])) end
changed(KEYS[4])
return {'ok', ARGV[2], ARGV[3]}
"""

# KEYS registry wanted ; ARGV stream
_GET = """
local spec = redis.call('HGET', KEYS[1], ARGV[1])
if not spec then return {'unknown'} end
return {'ok', spec, redis.call('HGET', KEYS[2], ARGV[1])}
"""

# KEYS registry wanted ids ; ARGV after limit
_LIST = """
local from = ARGV[1] == '' and '-' or '(' .. ARGV[1]
local found = {'ok'}
for _, stream in ipairs(redis.call('ZRANGEBYLEX', KEYS[3], from, '+', 'LIMIT', 0, ARGV[2])) do
  found[#found + 1] = stream
  found[#found + 1] = redis.call('HGET', KEYS[1], stream)
  found[#found + 1] = redis.call('HGET', KEYS[2], stream)
end
return found
"""

_CHANGE = """
local function change(stream, desired, outcome, has_changed)
  local old = redis.call('HGET', KEYS[2], stream)
  local revision = tonumber(old:match('(%d+)$'))
  desired = desired or old:match('^([^|]*)')
  local new = desired .. '|' .. outcome .. '|'
  if has_changed or old ~= new .. whole(revision) then
    redis.call('HSET', KEYS[2], stream, new .. whole(revision + 1))
    changed(KEYS[3])
  end
  return {'ok', redis.call('HGET', KEYS[1], stream), redis.call('HGET', KEYS[2], stream)}
end
"""

# KEYS registry wanted changes head events ; ARGV stream old_spec new_spec retain_ms revision
_CHANGE_SPEC = f"""{_CHANGE}
local spec = redis.call('HGET', KEYS[1], ARGV[1])
if not spec then return {{'unknown'}} end
local revision = redis.call('HGET', KEYS[2], ARGV[1]):match('(%d+)$')
if spec ~= ARGV[2] or (ARGV[5] ~= '' and revision ~= ARGV[5]) then return {{'stale'}} end
local is_other = ARGV[3] ~= spec
if is_other then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
  redis.call('HSET', KEYS[4], 'retain_ms', ARGV[4])
  local newest_ms = redis.call('HGET', KEYS[4], 'time_ms')
  if newest_ms then redis.call('PEXPIREAT', KEYS[5], whole(newest_ms + ARGV[4])) end
end
return change(ARGV[1], nil, '', is_other)
"""

# KEYS registry wanted changes ; ARGV stream desired
_SET_DESIRED = f"""{_CHANGE}
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return {{'unknown'}} end
return change(ARGV[1], ARGV[2], '')
"""

# KEYS registry wanted changes lease ; ARGV stream token outcome revision
_FINISH = f"""{_CHANGE}
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return {{'unknown'}} end
if not holds(KEYS[4], ARGV[2]) then return {{'lost'}} end
local revision = redis.call('HGET', KEYS[2], ARGV[1]):match('(%d+)$')
if ARGV[4] ~= '' and revision ~= ARGV[4] then return {{'stale', revision}} end
return change(ARGV[1], nil, ARGV[3])
"""

# KEYS registry wanted ids changes deleted forgotten, then all keys of the stream that go
# ARGV stream max_deleted_logs max_deleted key_begin
_DELETE = """
local stream = ARGV[1]
if redis.call('HDEL', KEYS[1], stream) == 0 then return {'unknown'} end
redis.call('HDEL', KEYS[2], stream)
redis.call('ZREM', KEYS[3], stream)
redis.call('DEL', unpack(KEYS, 7))
redis.call('ZADD', KEYS[5], changed(KEYS[4]), stream)
local function key(name, kind)
  return ARGV[4] .. '{' .. name .. '}:' .. kind
end
local count = redis.call('ZCARD', KEYS[5])
local last = count - tonumber(ARGV[2]) - 1
if last >= 0 then
  redis.call('DEL', key(redis.call('ZRANGE', KEYS[5], last, last)[1], 'events'))
end
if count > tonumber(ARGV[3]) then
  local name = redis.call('ZPOPMIN', KEYS[5])[1]
  local seq = tonumber(redis.call('HGET', key(name, 'head'), 'seq') or '0')
  redis.call('DEL', key(name, 'head'), key(name, 'events'))
  if seq > tonumber(redis.call('GET', KEYS[6]) or '0') then
    redis.call('SET', KEYS[6], whole(seq))
  end
end
return {'ok'}
"""

REGISTRY: Final[dict[str, str]] = {
    "create": _CREATE,
    "get": _GET,
    "list": _LIST,
    "change_spec": _CHANGE_SPEC,
    "set_desired": _SET_DESIRED,
    "finish": _FINISH,
    "delete": _DELETE,
}
"""Name -> Lua."""
