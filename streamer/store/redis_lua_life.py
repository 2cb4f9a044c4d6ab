"""Lua that keeps the epoch honest when a server comes back with less than was seen of it.

A server may come back without its newest events: after a power cut, as a replica that lagged and
took over, from an old copy. Their numbers are then given again, and nothing in the data tells. But
whoever saw the lost events can tell, however much was appended meanwhile, because the data say
where they left the history that was seen:

- All appends of all streams are counted together. What comes back is always a beginning of what
  was, so whoever saw more appends than there are has seen a lost one.
- A server has another *replication id* after each start and each promotion, so between two of them
  nobody else can have changed the data. The first append under a new one notes at which count the
  one before ended.
- An epoch has a time at which it began, later than that of every epoch before it.
- A process says with each call which epoch it saw, how many appends, and under which id. If that
  epoch is later than the one that is there, or the id ended at a smaller count, the process saw
  what is lost: a new epoch begins, for all.

An id that is not noted (too long ago, or in a history that was given up) is not believed. Reading
writes nothing unless a new epoch begins, so full memory does not stop it. A user without the right
to INFO sees no ids; then only the count tells, until new appends hide it.
"""

from __future__ import annotations

from typing import Final

__all__ = ["LIFE"]

LIFE: Final = """
local function server_now()
  local info = redis.pcall('INFO', 'replication')
  return type(info) == 'string' and info:match('master_replid:(%x+)') or ''
end

local function begin_epoch(key, life, epoch, after_ms)
  life.epoch, life.began = epoch, math.max(now_ms(), after_ms + 1)
  redis.call('HSET', key, 'epoch', epoch, 'began', whole(life.began))
end

-- What is noted; in an empty store the first epoch begins.
local function life_of(key, new_epoch)
  local facts = redis.call('HMGET', key, 'epoch', 'began', 'server', 'appends')
  if facts[1] then
    return {
      epoch = facts[1], began = tonumber(facts[2]),
      server = facts[3], appends = tonumber(facts[4]),
    }
  end
  local life = {server = server_now(), appends = 0}
  redis.call('HSET', key, 'server', life.server, 'appends', '0')
  begin_epoch(key, life, new_epoch, 0)
  return life
end

-- How many appends there were at the end of a server's time.
local function appends_under(life, lives, server)
  if server == life.server then return life.appends end
  for _, line in ipairs(redis.call('LRANGE', lives, 0, -1)) do
    local past, appends = line:match('^(%x*) (%d+)$')
    if past == server then return tonumber(appends) end
  end
  return -1
end

-- The same, after a look at what the caller saw; `seen` is epoch, its begin, server, appends, and
-- a name for a new epoch.
local function checked_life(key, lives, seen)
  local life = life_of(key, seen[5])
  local began = tonumber(seen[2])
  local has_lost = began > life.began
  if began == life.began then
    has_lost = seen[1] ~= life.epoch
      or tonumber(seen[4]) > appends_under(life, lives, seen[3])
  end
  if has_lost then
    begin_epoch(key, life, seen[5], began)
    redis.call('DEL', lives)
  end
  return life
end

local function count_append(key, lives, life)
  local server = server_now()
  if server ~= life.server then
    redis.call('LPUSH', lives, life.server .. ' ' .. whole(life.appends))
    redis.call('LTRIM', lives, 0, 99)
    life.server = server
  end
  life.appends = life.appends + 1
  redis.call('HSET', key, 'server', life.server, 'appends', whole(life.appends))
end

-- What every caller learns, at the end of an answer.
local function with_life(answer, life)
  for _, fact in ipairs({life.epoch, whole(life.began), life.server, life.appends}) do
    answer[#answer + 1] = fact
  end
  return answer
end
"""
