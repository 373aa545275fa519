-- Removes members from a list and from their owners' parts of it. The parts are in the same slot as the list.
-- KEYS: 1 the list, 2 times of the next checks, 3 owners. ARGV: members. Reply: 1.
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
