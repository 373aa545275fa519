-- Deletes entries of one namespace in one bucket. The keys are described in entries.lua.
-- KEYS: 1 heads, 2 members, 3 ends, 4 counts, then the entries; with an idempotency key, also the remembered answers.
-- ARGV: 1 `ahead`, 2 precondition, 3 time (entries last put before it have ended), 4 idempotency key or empty, then the
--   members of the entries.
-- Reply: `D`, replayed flag, number of deleted entries that had not expired; or a refusal as in write.lua.
local k = {heads = KEYS[1], members = KEYS[2], ends = KEYS[3], counts = KEYS[4]}
local ahead, since, deleted = tonumber(ARGV[1]), tonumber(ARGV[3]), 0
local given, memory = recall(KEYS[#KEYS], ARGV[4], ahead, 'D')
if given then return given end
for i = 5, ARGV[2] == '' and 4 or #ARGV do
  local head = head_of(k, ARGV[i], ahead, since)
  local version, life, _ = 0, NO_LIFE
  if head then _, version, life = unpack_(HEAD, head) end
  if not is_met(ARGV[2], version, life) then return {'R', 'version_mismatch', version, life} end
end
for i = 5, #ARGV do
  if head_of(k, ARGV[i], ahead, since) then deleted = deleted + 1 end
  call('UNLINK', KEYS[i])
  drop(k, ARGV[i])
end
purge(k, PURGED, ahead)
local answer = {'D', 0, deleted}
if memory then remember(memory, answer, 8, REMEMBERED_MS, ahead) end
return answer
