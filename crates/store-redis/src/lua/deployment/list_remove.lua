-- Removes members from a list and from their owners' parts, which are in the list's slot.
-- KEYS: 1 list, 2 next checks, 3 owners. ARGV: members. Reply: 1.
for _, member in ipairs(ARGV) do
  local part = call('HGET', KEYS[3], member)
  if part then
    call('ZREM', part, member)
    call('HDEL', KEYS[3], member)
  end
  call('ZREM', KEYS[2], member)
  call('ZREM', KEYS[1], member)
end
return 1
