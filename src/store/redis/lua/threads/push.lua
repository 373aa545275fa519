-- Fast path: one push to each of some living threads that are not watched, which makes no chunked array of a plain one, nor
-- the other way round, and drops at most one element. Each write has its own outcome: see set.lua.
-- KEYS: the threads. ARGV: policy, field, element, and window or 0, of each.
-- Reply: the outcome of one write, or an array with those of several: 0 when it is for write.lua; the new meta and the length; a refusal as write.lua has it; or an error.
local function push(key, policy, f, v, window)
  local ahead, _, _, max_bytes, max_keys = unpack_('>I6I5I6I4I4', policy)
  local got = call('HMGET', key, 'M', f)
  local m, text = got[1], got[2]
  if not m or byte(m) % 2 == 0 or byte(m) > 3 then return 0 end
  local owner, access = sub(m, META_BYTES + 1), sub(policy, POLICY_BYTES + 1)
  if access ~= owner and access ~= '' and (access ~= '-' or owner ~= '') then return 0 end
  local format, life, version, bytes, keys, created, written, ttl, ends, next_array, grace, sequence, watched = unpack_(META, m)
  local kept = grace * 1000 + ahead
  if call('PTTL', key) <= kept then return 0 end
  local left = lifetime(ttl, ends, ahead)
  if left == 0 or watched > now(ahead) then return 0 end
  local before = bytes

  local fields, gone, length
  if text and byte(text) == 65 then
    local a = unpack_array(text)
    local drop = window > 0 and a.next - a.first + 1 - window or 0
    if drop > 1 then return 0 end
    local added, tail = #v + 1, nil
    bytes = bytes - a.bytes
    if a.tail_bytes + added > CHUNK_BYTES then
      a.tail = a.tail + 1
      tail = fmt('%.0f', a.next) .. '\n' .. v
      a.tail_bytes = #tail
    else
      tail = call('HGET', key, chunk_name(a.id, a.tail)) .. '\n' .. v
      a.tail_bytes = a.tail_bytes + added
    end
    a.next, a.bytes = a.next + 1, a.bytes + added
    local head_name, head = chunk_name(a.id, a.head), nil
    if drop == 1 then
      local size = a.head == a.tail and #tail or call('HSTRLEN', key, head_name)
      -- a chunk past the size holds one element alone, which need not be read to be dropped
      local text = a.head == a.tail and tail or size <= CHUNK_BYTES and call('HGET', key, head_name)
      local cut = text and find(text, '\n', a.skip + 2, true)
      a.first = a.first + 1
      if cut then
        a.bytes, a.skip = a.bytes - (cut - 1 - a.skip), cut - 1
        if a.skip > CHUNK_BYTES / 2 then
          local ordinal = fmt('%.0f', a.first)
          head = ordinal .. sub(text, a.skip + 1)
          a.skip = #ordinal
          if a.head == a.tail then tail, a.tail_bytes, head = head, #head, nil end
        end
      else
        a.bytes, a.skip = a.bytes - (size - a.skip), #fmt('%.0f', a.first)
        a.head, gone = a.head + 1, head_name
      end
      if a.bytes < CHUNK_BYTES / 2 then return 0 end
    end
    bytes, length = bytes + a.bytes, a.next - a.first
    fields = {f, pack_array(a), chunk_name(a.id, a.tail), tail}
    if head then fields[5], fields[6] = head_name, head end
  else
    if text and byte(text) ~= 91 then return {'R', 'not_an_array', 0} end
    local new = ((not text or text == '[]') and '[' or text) .. '\n' .. v
    if #new > CHUNK_BYTES then return 0 end
    local _, count = string.gsub(new, '\n', '\n')
    length = count
    if window > 0 and count > window then
      local cut = 1
      for _ = 0, count - window do cut = find(new, '\n', cut + 1, true) end
      new, length = '[' .. sub(new, cut), window
    end
    if text then
      bytes = bytes - #text + #new
    else
      bytes, keys = bytes + #f + #new + 1, keys + 1
    end
    fields = {f, new}
  end
  if bytes + 1 > max_bytes then return {'R', 'state_too_large', bytes + 1, before == 0 and 2 or before + 1} end
  if keys > max_keys then return {'R', 'too_many_keys'} end

  -- first, since it changes nothing if it fails
  move_owned(key, owner, written, ahead)
  m = pack(META, format, life, version + 1, bytes, keys, created, now(ahead), ttl, ends, next_array, grace, sequence, watched) .. owner
  if gone then call('HDEL', key, gone) end
  fields[#fields + 1], fields[#fields + 2] = 'M', m
  call('HSET', key, unpack(fields))
  call('PEXPIRE', key, left + kept)
  return {m, length}
end

local outcomes = {}
for i = 1, #KEYS do
  local at = 4 * i
  outcomes[i] = outcome_of(pcall(push, KEYS[i], ARGV[at - 3], ARGV[at - 2], ARGV[at - 1], tonumber(ARGV[at])))
end
return #KEYS == 1 and outcomes[1] or outcomes
