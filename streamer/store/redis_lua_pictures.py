"""Lua of the pictures.

What the keys hold, and the functions that all scripts share, are in `streamer.store.redis_scripts`.
A line of the index is ``<number> <captured> <ends_ms> <media type>``; `captured` has 20 digits, so
that it is compared as text: nanoseconds are too long for numbers in Lua.
"""

from __future__ import annotations

from typing import Final

__all__ = ["PICTURES"]

_LINE = """
local function facts(line)
  local number, captured, ends, media = line:match('^(%d+) (%d+) (%d+) (.*)$')
  return number, captured, tonumber(ends), media
end
"""

# KEYS lease index bodies ; ARGV token captured media body ttl_ms max_pictures
_PUT = f"""{_LINE}
if not holds(KEYS[1], ARGV[1]) then return {{'lost'}} end
local now = now_ms()
local last_end = now + tonumber(ARGV[5])
local line_end = whole(last_end)
local lines = redis.call('ZRANGE', KEYS[2], 0, -1)
local number = 0
for i, line in ipairs(lines) do
  local its, _, ends = facts(line)
  number = tonumber(its)
  if ends <= now or i <= #lines + 1 - tonumber(ARGV[6]) then
    redis.call('ZREM', KEYS[2], line)
    redis.call('HDEL', KEYS[3], its)
  else
    last_end = math.max(last_end, ends)
  end
end
number = whole(number + 1)
redis.call('HSET', KEYS[3], number, ARGV[4])
redis.call('ZADD', KEYS[2], number, table.concat({{number, ARGV[2], line_end, ARGV[3]}}, ' '))
redis.call('PEXPIREAT', KEYS[2], whole(last_end))
redis.call('PEXPIREAT', KEYS[3], whole(last_end))
return {{'ok'}}
"""

# KEYS registry index bodies ; ARGV stream before
_GET = f"""{_LINE}
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return {{'unknown'}} end
local now, count, first, last, best = now_ms(), 0, '', '', nil
for _, line in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  local number, captured, ends, media = facts(line)
  if ends > now then
    count = count + 1
    if count == 1 or captured < first then first = captured end
    if captured > last then last = captured end
    local is_better = ARGV[2] == ''
      or (captured < ARGV[2] and (not best or captured >= best[2]))
    if is_better then best = {{number, captured, media}} end
  end
end
if not best then return {{'missing', count, first, last}} end
return {{'ok', best[2], best[3], redis.call('HGET', KEYS[3], best[1])}}
"""

PICTURES: Final[dict[str, str]] = {
    "put_picture": _PUT,
    "get_picture": _GET,
}
"""Name -> Lua."""
