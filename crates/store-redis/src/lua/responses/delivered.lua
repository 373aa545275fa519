-- Records that the caller has received the answer of a response. KEYS: 1 response. ARGV: 1 `ahead`. Reply: 1.
if call('PTTL', KEYS[1]) > tonumber(ARGV[1]) then call('HSET', KEYS[1], 'D', '1') end
return 1
