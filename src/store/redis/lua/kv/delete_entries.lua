-- Deletes entries. KEYS: 1 heads, 2 members, 3 ends, 4 counts, then the entries.
-- ARGV: 1 ahead, 2 precondition of all of them, then their members.
-- Reply: how many lived; or a refusal as in write.lua.
local k = {heads = KEYS[1], members = KEYS[2], ends = KEYS[3], counts = KEYS[4]}
local ahead, deleted = tonumber(ARGV[1]), 0
for i = 3, ARGV[2] == '' and 2 or #ARGV do
  local head = head_of(k, ARGV[i], ahead)
  local version, life, _ = 0, NOBODY
  if head then _, version, life = unpack_(HEAD, head) end
  if not is_met(ARGV[2], version, life) then return {'R', 'version_mismatch', version, life} end
end
for i = 3, #ARGV do
  if head_of(k, ARGV[i], ahead) then deleted = deleted + 1 end
  call('UNLINK', KEYS[i + 2])
  drop(k, ARGV[i])
end
purge(k, PURGED, ahead)
return {deleted}
