-- Turns a hash with the fields of a thread into a living thread. Call this function after `begin_life`. `t` contains
-- the values of the meta, the owner's tag and name, and the metadata as JSON. `origin` contains the id and version of
-- the thread that was copied, or is empty. Returns a reply as in write.lua, and the remaining lifetime.
local function begin_with(k, t, origin, ahead)
  local key, id = k.thread, id_of(k.thread)
  local sequence = events_before(k.archive) + (origin == '' and 1 or 2)
  local m = pack(META, format_of(t.owner, false), t.life, t.version, t.bytes, t.keys, t.created, t.updated, t.ttl, t.ends,
    t.next_array, t.grace, sequence, watched_until(k.watch, ahead)) .. t.owner
  call('HSET', key, 'M', m, 'D', t.metadata)
  if t.owner ~= '' then
    call('HSET', key, 'O', t.owner_text)
    list_owned(key, id, t.owner, t.created, t.updated)
  end
  local lives = lifetime(t.ttl, t.ends, ahead)
  call('PEXPIRE', key, lives + t.grace * 1000 + ahead)
  -- key names are read only if an event can contain them, because reading more names would dominate the cost
  local named = t.keys > NAMED_MAX and '!' or names(call('HKEYS', key))
  log_event(k.log, CREATED, 0, now(ahead), t.version, origin == '' and sequence or sequence - 1, t.life, id, named, ahead)
  if origin ~= '' then log_event(k.log, FORKED, 0, now(ahead), t.version, sequence, t.life, id, origin, ahead) end
  return {'W', 0, m, '', t.metadata, lives, fmt('%.0f', now(ahead)), t.owner_text}, lives
end

-- Checks whether `key` is free for a new thread. Returns a refusal or nil, then the results of `living`.
local function vacancy(key, ahead)
  local m, left, dead = living(key, ahead)
  if not m and not dead and left > ahead then return {'R', 'thread_destroyed'} end
  return nil, m, left, dead
end

-- Frees an id for a new thread: ends an expired thread, or removes the expired tombstone of a destroyed thread. `dead`
-- and `left` are results of `vacancy`.
local function free_id(k, dead, left, ahead, archive_ms)
  if dead then
    end_life(k, dead, EXPIRED, ended_at(dead, left, ahead), ahead, archive_ms)
  elseif left ~= -2 then
    call('UNLINK', k.thread)
  end
end
