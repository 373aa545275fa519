-- Deletes entries that ended together with their namespace. The keys are described in entries.lua.
-- KEYS: 1 heads, 2 members, 3 ends, 4 counts, then the entries.
-- ARGV: 1 time (only entries last put before this time are deleted), then members. Reply: as in delete_entries.lua.
local k = {heads = KEYS[1], members = KEYS[2], ends = KEYS[3], counts = KEYS[4]}
local since, buried = tonumber(ARGV[1]), 0
for i = 2, #ARGV do
  local head = call('HGET', k.heads, ARGV[i])
  if head and ended_with_namespace(head, since) then
    call('UNLINK', KEYS[i + 3])
    drop(k, ARGV[i])
    buried = buried + 1
  end
end
return {'D', 0, buried}
