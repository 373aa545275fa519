-- Deletes archives, with their scopes. KEYS: 1 archives, then the two possible names of each.
-- ARGV: members of archives, ID-LIFE. Reply: 1.
for i, member in ipairs(ARGV) do
  local id, life = string.match(member, '^(.*)%-(%x+)$')
  local last, earlier = KEYS[2 * i], KEYS[2 * i + 1]
  local m = call('HGET', last, 'M')
  local is_last = m and hex(sub(m, LIFE_AT, LIFE_END)) == life
  call('UNLINK', is_last and last or earlier)
  local thread = sub(last, 1, find(last, '}:a:', 1, true)) .. ':t:' .. id
  for _, kind in ipairs(BESIDE) do call('UNLINK', beside(thread, kind) .. ':' .. life) end
  call('ZREM', KEYS[1], member)
end
return 1
