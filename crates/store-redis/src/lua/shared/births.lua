-- Shared by the scripts that make a thread of the content of another one, or of a document.

-- Makes a hash with the fields of a thread the beginning of its life, once `begin_life` has it in the deadlines. `t` has
-- what the meta has, the tag and the text of the owner, and the metadata as JSON text. `origin`: the id and the version
-- of the thread that it is a copy of, or nothing. Answers as write.lua does.
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
  -- reading more names than an event has takes longer than all else
  local named = t.keys > MOST_NAMED and '!' or names(call('HKEYS', key))
  log_event(k.log, CREATED, 0, now(ahead), t.version, origin == '' and sequence or sequence - 1, t.life, id, named, ahead)
  if origin ~= '' then log_event(k.log, FORKED, 0, now(ahead), t.version, sequence, t.life, id, origin, ahead) end
  return {'W', 0, m, '', t.metadata, lives, fmt('%.0f', now(ahead)), t.owner_text}, lives
end

-- Whether a new thread may have that id: nothing, or a refusal. Then the meta of the thread if there is one, its key's
-- time to live, and the meta of one that is dead but not yet ended.
local function vacancy(key, ahead)
  local m, left, dead = living(key, ahead)
  if not m and not dead and left > ahead then return {'R', 'thread_destroyed'} end
  return nil, m, left, dead
end

-- Removes what was left under the id of a new thread: a thread that is dead but not yet ended, or a tombstone that is over.
-- `dead` and `left` as `vacancy` returns them.
local function make_way(k, dead, left, ahead, archive_ms)
  if dead then
    end_life(k, dead, EXPIRED, ended_at(dead, left, ahead), ahead, archive_ms)
  elseif left ~= -2 then
    call('UNLINK', k.thread)
  end
end
