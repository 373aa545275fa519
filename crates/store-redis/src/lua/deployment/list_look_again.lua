-- Changes the times of the next checks of members that are on a list.
-- KEYS: 1 list, 2 times of the next checks. ARGV: member and time. Reply: 1.
for i = 1, #ARGV, 2 do
  if call('ZSCORE', KEYS[1], ARGV[i]) then call('ZADD', KEYS[2], ARGV[i + 1], ARGV[i]) end
end
return 1
