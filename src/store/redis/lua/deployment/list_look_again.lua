-- Has members that are on a list looked at by another time. KEYS: 1 list, 2 when to look at whom.
-- ARGV: member and time. Reply: 1.
for i = 1, #ARGV, 2 do
  if call('ZSCORE', KEYS[1], ARGV[i]) then call('ZADD', KEYS[2], ARGV[i + 1], ARGV[i]) end
end
return 1
