-- Deletes archives. KEYS: 1 archives, then of each its two possible names.
-- ARGV: members of archives, ID-LIFE. Reply: 1.
for i, member in ipairs(ARGV) do
  local last, earlier = KEYS[2 * i], KEYS[2 * i + 1]
  local m = call('HGET', last, 'M')
  local is_last = m and hex(sub(m, 2, 9)) == string.match(member, '%-(%x+)$')
  call('UNLINK', is_last and last or earlier)
  call('ZREM', KEYS[1], member)
end
return 1
