"""What happens inside Redis: one Lua script per operation, each atomic.

A script answers a list whose first item is one of `streamer.store.redis_answers.Word`. Every time
in here is the server's clock, so the clocks of our machines need not agree. Commands that grow the
data come before any that only shrink it, except where old data makes room for new: so a Redis that
is out of memory refuses a script before it has changed anything.

Keys (``<p>`` is the prefix; keys of one stream share the hash tag ``{<stream>}``):

===========================  ======  ===============================================================
``<p>:registry``             hash    stream -> spec and creation time, JSON
``<p>:wanted``               hash    stream -> ``desired|outcome|revision``
``<p>:ids``                  zset    registered streams, all with score 0: sorted by name
``<p>:changes``              string  change counter of the registry; also a channel
``<p>:life``                 hash    ``epoch`` and when it ``began``; ``appends`` of all streams;
                                     ``server``: its replication id at the newest of them
``<p>:lives``                list    ``<id> <appends>``: earlier ids, newest first, and their end
``<p>:deleted``              zset    deleted streams by the counter at their deletion
``<p>:forgotten``            string  greatest last seq among deleted streams no longer remembered
``<p>:presence:<kind>``      hash    replica -> announcement; ``...:ends``: zset of their ends
``<p>:{<stream>}:lease``     string  ``<token> <owner>``, with a TTL
``<p>:{<stream>}:status``    string  JSON, with a TTL
``<p>:{<stream>}:<kind>:``   zset    ``index``: facts of the pictures, in the order of putting; hash
                                     ``bodies``: number -> body. Both end with the last picture
``<p>:{<stream>}:head``      hash    ``seq``, ``retain_ms``, ``time_ms`` of the newest event
``<p>:{<stream>}:events``    stream  id ``<seq>-0``; ``t``: append time, ``b``: body; also a channel
===========================  ======  ===============================================================
"""

from __future__ import annotations

from typing import Final

from streamer.store.redis_lua_leases import LEASES
from streamer.store.redis_lua_life import LIFE
from streamer.store.redis_lua_log import LOG
from streamer.store.redis_lua_pictures import PICTURES
from streamer.store.redis_lua_registry import REGISTRY

__all__ = ["SCRIPTS"]


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

SCRIPTS: Final[dict[str, str]] = {
    name: _SHARED + LIFE + lua for name, lua in (REGISTRY | LEASES | PICTURES | LOG).items()
}
"""Name -> Lua."""
