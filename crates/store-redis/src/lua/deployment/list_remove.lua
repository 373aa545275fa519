-- Removes members from a list and from their owners' lists, whose keys are read from KEYS[3] and are in the same slot.
-- KEYS: 1 the list, 2 members by next check, 3 a hash: key of each member's owner list. ARGV: members. Reply: 1.
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
