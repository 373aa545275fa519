-- Deletes archives and their scopes.
-- KEYS: 1 archives, then the two possible keys of each archive. ARGV: members ID-LIFE. Reply: 1.
for i, member in ipairs(ARGV) do
  local id, life = string.match(member, '^(.*)%-(%x+)$')
  local last = KEYS[2 * i]
  local archive, m = archive_of(last, life)
  call('UNLINK', archive)
  local thread = sub(last, 1, find(last, '}:a:', 1, true)) .. ':t:' .. id
  if m and #m > META_BYTES then call('ZREM', owned_key(thread, ':oa:', sub(m, META_BYTES + 1)), member) end
  segments_of(beside(thread, ':k:') .. ':' .. life).drop()
  for _, kind in ipairs(SCOPE_KEY_KINDS) do call('UNLINK', beside(thread, kind) .. ':' .. life) end
  call('UNLINK', beside(thread, ':f:') .. ':' .. life)
  call('ZREM', KEYS[1], member)
end
return 1
