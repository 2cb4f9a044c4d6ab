"""What happens inside Redis: one Lua script per operation, each atomic.

A script answers a list whose first item is one of the words in `Word`. Every time in here is the
server's clock, so the clocks of our machines need not agree. Commands that grow the data come
before any that only shrink it, except where old data makes room for new: so a Redis that is out of
memory refuses a script before it has changed anything.

Keys (``<p>`` is the prefix; keys of one stream share the hash tag ``{<stream>}``):

===========================  ======  ===============================================================
``<p>:registry``             hash    stream -> spec and creation time, JSON
``<p>:wanted``               hash    stream -> ``desired|outcome|revision``
``<p>:ids``                  zset    registered streams, all with score 0: sorted by name
``<p>:changes``              string  change counter of the registry; also a channel
``<p>:epoch``                string  name of this life of the log
``<p>:deleted``              zset    deleted streams by the counter at their deletion
``<p>:forgotten``            string  greatest last seq among deleted streams no longer remembered
``<p>:presence:<kind>``      hash    replica -> announcement; ``...:ends``: zset of their ends
``<p>:{<stream>}:lease``     string  ``<token> <owner>``, with a TTL
``<p>:{<stream>}:status``    string  JSON, with a TTL
``<p>:{<stream>}:head``      hash    ``seq``, ``retain_ms``, ``time_ms`` of the newest event
``<p>:{<stream>}:events``    stream  id ``<seq>-0``; ``t``: append time, ``b``: body; also a channel
===========================  ======  ===============================================================
"""

from __future__ import annotations

from typing import Final

__all__ = ["SCRIPTS", "Word"]


class Word:
    """First item of every answer."""

    OK: Final = b"ok"
    KNOWN: Final = b"known"
    UNKNOWN: Final = b"unknown"
    FULL: Final = b"full"
    HELD: Final = b"held"
    LOST: Final = b"lost"


_SHARED = """
local function now_ms()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end

local function whole(n)
  return string.format('%.0f', n)
end

-- The counter never repeats a number, not even when Redis came back empty.
local function changed(changes)
  local last = tonumber(redis.call('GET', changes) or '0')
  local n = whole(math.max(last + 1, now_ms()))
  redis.call('SET', changes, n)
  redis.call('PUBLISH', changes, n)
  return n
end

local function holds(lease, token)
  local held = redis.call('GET', lease)
  return held and held:match('^(%S+) ') == token
end

local function entry(events, seq)
  return redis.call('XRANGE', events, whole(seq) .. '-0', whole(seq) .. '-0')[1]
end

local function seq_of(event)
  return tonumber(event[1]:match('^(%d+)'))
end

-- Seq of the oldest event that is young enough, and of the oldest one there is. Events are numbered
-- without holes and their times never fall, so halving finds it.
local function first_kept(events, head, retain_ms, now)
  local oldest = redis.call('XRANGE', events, '-', '+', 'COUNT', 1)[1]
  if not oldest then return head + 1, head + 1 end
  local function is_old(event)
    return tonumber(event[2][2]) + retain_ms <= now
  end
  local first = seq_of(oldest)
  if not is_old(oldest) then return first, first end
  local old, young = first, head + 1
  while young - old > 1 do
    local middle = math.floor((old + young) / 2)
    if is_old(entry(events, middle)) then old = middle else young = middle end
  end
  return young, first
end
"""

# KEYS registry wanted ids changes epoch deleted forgotten head events
# ARGV stream spec wanted max_streams retain_ms new_epoch
_CREATE = """
local stream = ARGV[1]
local known = redis.call('HGET', KEYS[1], stream)
if known then return {'known', known, redis.call('HGET', KEYS[2], stream)} end
if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[4]) then return {'full'} end
redis.call('SET', KEYS[5], ARGV[6], 'NX')
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
local function change(stream, desired, outcome)
  local old = redis.call('HGET', KEYS[2], stream)
  local revision = tonumber(old:match('(%d+)$'))
  desired = desired or old:match('^([^|]*)')
  local new = desired .. '|' .. outcome .. '|'
  if old ~= new .. whole(revision) then
    redis.call('HSET', KEYS[2], stream, new .. whole(revision + 1))
    changed(KEYS[3])
  end
  return {'ok', redis.call('HGET', KEYS[1], stream), redis.call('HGET', KEYS[2], stream)}
end
"""

# KEYS registry wanted changes ; ARGV stream desired
_SET_DESIRED = f"""{_CHANGE}
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return {{'unknown'}} end
return change(ARGV[1], ARGV[2], '')
"""

# KEYS registry wanted changes lease ; ARGV stream token outcome
_FINISH = f"""{_CHANGE}
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return {{'unknown'}} end
if not holds(KEYS[4], ARGV[2]) then return {{'lost'}} end
return change(ARGV[1], nil, ARGV[3])
"""

# KEYS registry wanted ids changes deleted forgotten lease status
# ARGV stream max_deleted_logs max_deleted key_begin
_DELETE = """
local stream = ARGV[1]
if redis.call('HDEL', KEYS[1], stream) == 0 then return {'unknown'} end
redis.call('HDEL', KEYS[2], stream)
redis.call('ZREM', KEYS[3], stream)
redis.call('DEL', KEYS[7], KEYS[8])
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

SCRIPTS: Final[dict[str, str]] = {
    name: _SHARED + body
    for name, body in {
        "create": _CREATE,
        "get": _GET,
        "list": _LIST,
        "set_desired": _SET_DESIRED,
        "finish": _FINISH,
        "delete": _DELETE,
        "acquire": _ACQUIRE,
        "renew": _RENEW,
        "release": _RELEASE,
        "holders": _HOLDERS,
        "announce": _ANNOUNCE,
        "present": _PRESENT,
        "append": _APPEND,
        "read": _READ,
        "head": _HEAD,
        "epoch": _EPOCH,
    }.items()
}
"""Name -> Lua."""
