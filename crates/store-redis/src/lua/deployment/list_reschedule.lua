-- Reschedules the checks of listed members.
-- KEYS: 1 the list, 2 members by next check. ARGV: pairs of a member and a time. Reply: 1.
for i = 1, #ARGV, 2 do
  if call('ZSCORE', KEYS[1], ARGV[i]) then call('ZADD', KEYS[2], ARGV[i + 1], ARGV[i]) end
end
return 1
