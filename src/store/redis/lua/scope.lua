-- Shared by the scripts that read and write scopes. A scope is one hash:
--   M          meta: flags (1: takes no more writes), life, version, bytes of the values, number of
--              keys, created, updated, how long it lives after a use (0: that moves nothing), when
--              the time of the first key passes (0: of none), version of the tasks, places of the
--              oldest and of the next item of the history, its bytes, number of its events
--   kKEY       a value
--   xKEY       when its time passes, where it does
--   T          the task list as JSON, where there is one
--   R          the record, where there is one
-- Beside it, in its slot:
--   :k:NAME    the scope; of a thread its id, of others a digest
--   :y:NAME    the history: a stream of PLACE-0 with `t` time, `i` id, `v` value
--   :z:NAME    what its ids stand for: place (6 bytes) and fingerprint of the value
--   :j:NAME    its remembered answers, as records.lua has them
-- The scope of a thread has no time to live of its own: it has the thread's life, and ends with it.
local SCOPE = '>Bc8I6I4I4I6I6I6I6I6I6I6I6I4'
local SEALED = 1
local NOBODY = '\0\0\0\0\0\0\0\0'

local function pack_scope(s)
  return pack(SCOPE, s.flags, s.life, s.version, s.bytes, s.keys, s.created, s.updated, s.ttl,
    s.due, s.tasks, s.first, s.next, s.history, s.events)
end

-- Forgets keys whose time has passed.
local function purge(key, s, ahead)
  if s.due == 0 or s.due > now(ahead) then return end
  s.due = 0
  -- there may be none: what was to end first may have got another lifetime
  write_even_when_full(key)
  for _, f in ipairs(call('HKEYS', key)) do
    if byte(f) == 120 then
      local at = unpack_('>I6', call('HGET', key, f))
      if at <= now(ahead) then
        local value = 'k' .. sub(f, 2)
        s.bytes, s.keys = s.bytes - call('HSTRLEN', key, value), s.keys - 1
        call('HDEL', key, value, f)
      elseif s.due == 0 or at < s.due then
        s.due = at
      end
    end
  end
  call('HSET', key, 'M', pack_scope(s))
end

-- The scope, its end moved if this is a use; or nil, and whether something is in its place that is
-- over. Before that the meta of its thread, where `k.thread` is there.
local function open_scope(k, ahead, is_use)
  local thread
  if k.thread then
    if is_use then thread = touch(k.thread, ahead) else thread = living(k.thread, ahead) end
    if not thread then return nil end
  end
  local m = call('HGET', k.scope, 'M')
  if not m then return thread, nil, false end
  local s = {}
  s.flags, s.life, s.version, s.bytes, s.keys, s.created, s.updated, s.ttl, s.due, s.tasks, s.first,
    s.next, s.history, s.events = unpack_(SCOPE, m)
  if thread then
    -- else it is of a life whose end nobody saw
    if sub(thread, 2, 9) ~= s.life then return thread, nil, true end
  else
    local left = call('PTTL', k.scope)
    if left ~= -1 and left <= ahead then return nil, nil, true end
    s.left = left == -1 and -1 or left - ahead
    if s.ttl > 0 and is_use then
      s.left = s.ttl
      for _, key in ipairs({k.scope, k.history, k.ids}) do call('PEXPIRE', key, s.ttl + ahead) end
    end
  end
  purge(k.scope, s, ahead)
  return thread, s, false
end
