-- Opens a living thread for a script other than write.lua. Checks the same conditions as write.lua, in the same order.
-- Returns four values: the meta, or nil; if nil, a refusal or an earlier answer (or nil if the thread does not exist);
-- the argument for `remember`; and the remaining lifetime.
local function open_thread(key, answers, kind, ahead, access, idempotency, precondition, token)
  local m, left, dead = living(key, ahead)
  local refusal = owner_refusal(m, access)
  if refusal then return nil, refusal end
  local given, memory = recall(answers, idempotency, ahead, kind)
  if given then return nil, given end
  if not m and not dead and left > ahead then return nil, {'R', 'thread_destroyed'} end
  if token ~= '' or m and byte(m) % 2 == 0 then
    refusal = turn_refusal(key, m, token, ahead)
    if refusal then return nil, refusal end
  end
  local version, life = 0, NO_LIFE
  if m then life, version = unpack_(LIFE, m, LIFE_AT) end
  if not is_met(precondition, version, life) then return nil, {'R', 'version_mismatch', version, life} end
  if not m then return nil, nil, memory, 0 end
  local ttl, ends = unpack_(TIMES, m, TIMES_AT)
  return m, nil, memory, lifetime(ttl, ends, ahead)
end
