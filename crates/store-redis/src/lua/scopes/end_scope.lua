-- Ends a scope and deletes its contents.
-- KEYS: 1 scope, 2 history, 3 ids of the history, 4 remembered answers, 5 the thread of the scope, if any.
-- ARGV: 1 `ahead`, 2 expected version or empty, 3 turn token or empty, 4 `access`, 5 idempotency key or empty.
-- Reply: `E`, replayed flag, 1 if the scope existed, else 0; or a refusal.
local ahead = tonumber(ARGV[1])
local k = {scope = KEYS[1], history = KEYS[2], ids = KEYS[3], thread = KEYS[5]}
local thread, s, is_over, refusal = open_scope(k, ahead, false, ARGV[4])
if refusal then return refusal end
local given, memory = recall(KEYS[4], ARGV[5], ahead, 'E')
if given then return given end
if ARGV[3] ~= '' or thread and byte(thread) % 2 == 0 then
  refusal = turn_refusal(k.thread, thread, ARGV[3], ahead)
  if refusal then return refusal end
end
local version = s and s.version or 0
if ARGV[2] ~= '' and tonumber(ARGV[2]) ~= version then
  return {'R', 'version_mismatch', version, s and s.life or NO_LIFE}
end
if k.thread then touch(k.thread, ahead, '') end
-- if the thread has ended, its archive still needs the scope
if s or is_over then segments_of(k.scope).drop() end
if s or is_over then call('UNLINK', k.scope, k.history, k.ids) end
if s then forget_soon(KEYS[4], REMEMBERED_MS, ahead) end
local answer = {'E', 0, s and 1 or 0}
if memory then remember(memory, answer, 8, REMEMBERED_MS, ahead) end
return answer
