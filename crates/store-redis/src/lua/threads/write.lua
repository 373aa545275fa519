-- Applies a list of operations atomically. The script computes the result in tables and checks the limits before it writes,
-- because Redis does not roll back. A line `--+ name` inserts parts of appends.lua and responses/in_thread.lua.
-- KEYS: 1 thread, 2 remembered answers, 3 log, 4 archive, 5 archives, 6 watch.
-- ARGV:
--   1 policy: ahead, ttl, maximum age (0: none), maximum bytes, keys and bytes of metadata, life for a new thread, its grace
--     in seconds, lifetime of an archive, whether all changes are logged, access
--   2 precondition: empty, `E` exists, `V` version, `S` version and life, `L` life, `O` and a list of tags
--   3 idempotency key (16 bytes) and request (16 bytes), or empty
--   4 new ttl or empty
--   5 `d` to describe the thread
--   6 new metadata or empty
--   7 the metadata on which the new metadata is based, or empty
--   8 tombstone: empty to respect it; `I` to ignore it unless the thread was moved; `A` and a life to respect it, and to
--     refuse the write if that life has ended and the thread was destroyed recently
--   9 turn token or empty
--   10 owner: empty for no change; `C` to remove the owner; `B` to set the owner of a thread that has none; `S` to set it in
--     any case. After `B` and `S`, `+` or `-` says whether the owner may have another thread; then tag and name follow
--   11 trace or empty
--   12 number of fields, then the fields, each once; operations refer to them by one-based number
--   then guards `E` first count text..., `N` first count, for consecutive fields
--   then operations `S` first count text... and `D` first count, also for consecutive fields, `O` field count, `L` field
--     elements text (an array), `A` field elements bytes chunks chunk..., `C`, `P` or `Q` field element window (or empty;
--     `Q` skips a value that is not an array), `I` field integer
-- Reply: `W`, replayed flag, meta, answers of deletes, pushes, pops and increments in order as `kind value;`...; if
--   described, metadata, milliseconds to live, current time, owner; then the elements of each pop, each after a line feed;
--   unless replayed, the time of the previous write (0 for a new thread). Or `R`, the code of a refusal, and its data.
local key = KEYS[1]
--+ items
local k = {thread = key, log = KEYS[3], archive = KEYS[4], archives = KEYS[5]}
trace = ARGV[11]
local ahead, ttl, max_age, max_bytes, max_keys, max_metadata, life, grace, archive_ms, log_all = unpack_('>I6I5I6I4I4I4c8I4I6B', ARGV[1])
local m, left, dead = living(key, ahead)
local access = sub(ARGV[1], POLICY_BYTES + 1)
local refusal = owner_refusal(m, access)
if refusal then return refusal end
--+ step
local given, memory = recall(KEYS[2], ARGV[3], ahead, 'W')
if given then return given end
local is_tombstone = not m and not dead and left > ahead
if is_tombstone and (ARGV[8] ~= 'I' or call('HGET', key, 'T') == 'R')
  or sub(ARGV[8], 1, 1) == 'A' and is_past(k.archive, m, sub(ARGV[8], 2), ahead) then
  return {'R', 'thread_destroyed'}
end
local no_turn
if ARGV[9] ~= '' or m and byte(m) % 2 == 0 then
  refusal, no_turn = turn_refusal(key, m, ARGV[9], ahead)
  if refusal then return refusal end
end
local owner, version, bytes, keys, ends, next_array, sequence, watched = '', 0, 0, 0, 0, 0, 0, 0
local created, written, is_exclusive, _
if m then
  if byte(m) > LAST_FORMAT then return redis.error_reply('ERR threadkeep: unknown format') end
  _, life, version, bytes, keys, created, written, ttl, ends, next_array, grace, sequence, watched = unpack_(META, m)
  owner, is_exclusive = sub(m, META_BYTES + 1), byte(m) % 2 == 0 and not no_turn
end
local is_new = not m
local its_life = version > 0 and life or NO_LIFE
if not is_met(ARGV[2], version, its_life) then
  return {'R', 'version_mismatch', version, its_life}
end
local before, keys_before = keys > 0 and bytes + 1 or 2, keys

-- State of each field, by field number. `size`: bytes of the field's JSON (0: absent; nil: unread). `text` or `array`:
-- the value, once known. `count`: the number of elements, once known. `pushed`: the elements to append; `had` and
-- `has`: the number of elements before and after. `dirty`: the field changes. `stored`: the hash has the field. `old`:
-- the stored chunked array. A clear resets all of these tables. The tables are flat and there are few function calls,
-- because a list may have 20,000 fields.
local FIELDS, n_fields = 12, tonumber(ARGV[12])
local size, text, array, count, dirty = {}, {}, {}, {}, {}
local pushed, had, has = {}, {}, {}
local stored, old, cleared = {}, {}, is_new
local results, n_results, popped, popped_bytes = {}, 0, {}, 0
local i, n, op = FIELDS + n_fields + 1, #ARGV, 0

-- Records that the hash contains field `f`, the size of the field, and its value if known.
local function note(f, found, value)
  stored[f] = true
  if value and byte(value) == 65 then
    local a = unpack_array(value)
    a.written, array[f], old[f] = {}, a, unpack_array(value)
    found = a.bytes + 1
  elseif value then
    text[f] = value
  end
  size[f] = found
end

-- Reading the values of many fields at once takes half as long as reading the size of each field.
if n_fields > 16 and not cleared and ARGV[i] ~= 'C' then
  for from = 1, n_fields, 1000 do
    local to = math.min(from + 999, n_fields)
    local found = call('HMGET', key, unpack(ARGV, FIELDS + from, FIELDS + to))
    for f = from, to do
      local value = found[f - from + 1]
      if value then note(f, #value, value) else size[f] = 0 end
    end
  end
end

local function look(f)
  if not size[f] then
    size[f] = 0
    local found = cleared and 0 or call('HSTRLEN', key, ARGV[FIELDS + f])
    if found > 0 then note(f, found, found == HEADER_BYTES and call('HGET', key, ARGV[FIELDS + f])) end
  end
  return size[f]
end

-- Returns the text of a field, or nil if the field is absent or a chunked array.
local function read(f)
  if look(f) > 0 and not text[f] and not array[f] then text[f] = call('HGET', key, ARGV[FIELDS + f]) end
  return text[f]
end

-- Replaces a field with `new_text`, `new_array` or nothing. `elements` is the number of the array's elements, if known.
local function put(f, new_text, new_array, elements)
  local before, after = size[f] or look(f), new_text and #new_text or new_array and new_array.bytes + 1 or 0
  if before > 0 then bytes, keys = bytes - before - #ARGV[FIELDS + f] - 1, keys - 1 end
  if after > 0 then bytes, keys = bytes + after + #ARGV[FIELDS + f] + 1, keys + 1 end
  size[f], dirty[f] = after, true
  -- nil is assigned only to an existing index, because assigning it to a new index would enlarge the table
  if new_text or text[f] then text[f] = new_text end
  if new_array or array[f] then array[f] = new_array end
  if elements or count[f] then count[f] = elements end
  if pushed[f] then pushed[f] = nil end
end

local function new_array()
  next_array = next_array + 1
  return {id = next_array - 1, head = 0, tail = 0, first = 0, next = 0, skip = 1, tail_bytes = 1,
    bytes = 0, written = {[0] = '0'}}
end

local function push(f, v, window, skips)
  local p = pushed[f]
  if not p then
    local t, a = read(f), array[f]
    if t and byte(t) ~= 91 then
      if skips then return nil, 's' end
      return {'R', 'not_an_array', op}
    end
    p, had[f] = {}, a and a.next - a.first or count[f] or t and count_elements(t) or 0
    pushed[f], has[f] = p, had[f]
  end
  if window == 0 then
    put(f, '[]')
    return nil, 'l0'
  end
  p[#p + 1] = v
  has[f] = math.min(has[f] + 1, window or math.huge)
  return nil, 'l' .. has[f]
end

-- Appends the pushed elements, and drops elements beyond the window.
local function settle_pushes(f, p)
  local t, a, drop, from = text[f], array[f], had[f] + #p - has[f], 1
  if drop >= had[f] then
    t, a, from = '[', nil, drop - had[f] + 1
  elseif a then
    drop_oldest(key, a, drop)
  elseif drop > 0 then
    t = '[' .. sub(t, element_after(t, 2, drop))
  end
  if not a then
    local new = #t < CHUNK_BYTES and #p - from < CHUNK_BYTES and t .. '\n' .. table.concat(p, '\n', from)
    if new and #new <= CHUNK_BYTES then return put(f, new, nil, has[f]) end
    a = new_array()
    local kept = has[f] - (#p - from + 1)
    if kept > 0 then a.written[0], a.next, a.tail_bytes, a.bytes = '0' .. sub(t, 2), kept, #t, #t - 1 end
  end
  append(key, a, p, from)
  if a.bytes < CHUNK_BYTES / 2 then
    put(f, plain(key, a), nil, has[f])
  else
    put(f, nil, a)
  end
end

local function pop(f, many)
  if pushed[f] then settle_pushes(f, pushed[f]) end
  local t, a, gone = read(f), array[f], ''
  if t and byte(t) ~= 91 then return {'R', 'not_an_array', op} end
  local count = a and a.next - a.first or t and (count[f] or count_elements(t)) or 0
  if many >= count then
    if t and count > 0 then gone = sub(t, 2) elseif a then gone = sub(plain(key, a), 2) end
    if t or a then put(f, '[]', nil, 0) end
  elseif t then
    local position = element_after(t, 2, count - many)
    gone = sub(t, position)
    put(f, sub(t, 1, position - 1), nil, count - many)
  else
    gone = take_newest(key, a, many)
    if a.bytes < CHUNK_BYTES / 2 then put(f, plain(key, a), nil, count - many) else put(f, nil, a) end
  end
  popped[#popped + 1], popped_bytes = gone, popped_bytes + #gone
  return nil, 'e'
end

local function increment(f, by)
  local before = look(f) == 0 and not pushed[f] and '0' or read(f)
  if pushed[f] or not before or not find(before, '^%-?%d+$') then return {'R', 'not_an_integer', op} end
  if is_past_64_bits(before) then return {'R', 'integer_overflow', op} end
  if before == '-0' then before = '0' end
  local sum = add(before, by)
  if is_past_64_bits(sum) then return {'R', 'integer_overflow', op} end
  put(f, sum)
  return nil, 'v' .. sum
end

while ARGV[i] == 'E' or ARGV[i] == 'N' do
  local is_text, first, many = ARGV[i] == 'E', tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  i = i + 3
  for f = first, first + many - 1 do
    local t = read(f)
    if is_text then
      if t ~= ARGV[i] then return {'R', 'changed'} end
      i = i + 1
    elseif t and byte(t) == 123 then
      return {'R', 'changed'}
    end
  end
end
local metadata = ARGV[6]
if metadata ~= '' then
  if ARGV[7] ~= '' and (m and call('HGET', key, 'D') or '{}') ~= ARGV[7] then
    return {'R', 'changed'}
  end
  if #metadata > max_metadata then return {'R', 'metadata_too_large', #metadata} end
end
while i <= n do
  local code, f, refusal, result = ARGV[i], tonumber(ARGV[i + 1]), nil, nil
  if code == 'S' then
    local last = f + tonumber(ARGV[i + 2]) - 1
    i = i + 3
    for each = f, last do
      put(each, ARGV[i])
      i = i + 1
    end
    op = op + last - f
  elseif code == 'D' then
    local last = f + tonumber(ARGV[i + 2]) - 1
    for each = f, last do
      local exists = (size[each] or look(each)) > 0 or pushed[each]
      n_results = n_results + 1
      results[n_results] = exists and 'd1' or 'd0'
      if exists then put(each) end
    end
    i, op = i + 3, op + last - f
  elseif code == 'P' or code == 'Q' then
    refusal, result = push(f, ARGV[i + 2], tonumber(ARGV[i + 3]), code == 'Q')
    i = i + 4
  elseif code == 'O' then
    refusal, result = pop(f, tonumber(ARGV[i + 2]))
    i = i + 3
  elseif code == 'I' then
    refusal, result = increment(f, ARGV[i + 2])
    i = i + 3
  elseif code == 'L' then
    put(f, ARGV[i + 3], nil, tonumber(ARGV[i + 2]))
    i = i + 4
  elseif code == 'A' then
    local a, chunks = new_array(), tonumber(ARGV[i + 4])
    a.next, a.bytes, a.tail, a.tail_bytes = tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]), chunks - 1, #ARGV[i + 4 + chunks]
    for j = 1, chunks do a.written[j - 1] = ARGV[i + 4 + j] end
    put(f, nil, a)
    i = i + 5 + chunks
  else
    cleared, bytes, keys = true, 0, 0
    size, text, array, count, dirty, pushed = {}, {}, {}, {}, {}, {}
    i = i + 1
  end
  if refusal then return refusal end
  if result then
    n_results = n_results + 1
    results[n_results] = result
  end
  op = op + 1
end
for f = 1, n_fields do
  if pushed[f] then settle_pushes(f, pushed[f]) end
end
local total = keys > 0 and bytes + 1 or 2
if total > max_bytes then return {'R', 'state_too_large', total, before} end
if keys > max_keys then return {'R', 'too_many_keys'} end

local its_owner, change = owner, ARGV[10]
if change == 'C' then
  its_owner = ''
elseif change ~= '' and (owner == '' or byte(change) == 83) then
  its_owner = sub(change, 3, 34)
  if its_owner ~= owner and byte(change, 2) == 45 then return {'R', 'no_reservation'} end
else
  change = ''
end

if next_array >= 4294967296 then return redis.error_reply('ERR threadkeep: too many arrays') end

--+ plan
if is_new or cleared or its_owner ~= owner or ARGV[4] ~= '' then settle(key) end
if is_new then created = now(ahead) end
local logged, changed = is_new or log_all == 1 or watched > now(ahead), {}
if dead then
  end_life(k, dead, EXPIRED, ended_at(dead, left, ahead), ahead, archive_ms)
elseif is_new and left ~= -2 then
  call('UNLINK', key)
elseif cleared and m then
  if logged and keys_before <= NAMED_MAX then changed = call('HKEYS', key) end
  local kept = call('HMGET', key, 'D', 'O', 'U', 'N')
  call('UNLINK', key)
  for i, f in ipairs({'D', 'O', 'U', 'N'}) do
    if kept[i] then call('HSET', key, f, kept[i]) end
  end
end
-- this write comes first, because a failure here changes nothing
if its_owner ~= owner and its_owner ~= '' then
  list_owned(key, id_of(key), its_owner, created, now(ahead))
else
  move_owned(key, its_owner, written, ahead)
end
local puts, n_puts, gone = {}, 0, {}
local function add(field, value)
  puts[n_puts + 1], puts[n_puts + 2] = field, value
  n_puts = n_puts + 2
end
for f = 1, n_fields do
  if dirty[f] then
    local field, a, o = ARGV[FIELDS + f], array[f], not cleared and old[f]
    if logged and (size[f] > 0 or stored[f]) then changed[#changed + 1] = field end
    if o then
      local past = a and a.id == o.id and math.min(a.head - 1, o.tail) or o.tail
      for c = o.head, past do gone[#gone + 1] = chunk_name(o.id, c) end
      for c = a and a.id == o.id and a.tail + 1 or o.tail + 1, o.tail do gone[#gone + 1] = chunk_name(o.id, c) end
    end
    if a then
      add(field, pack_array(a))
      for c, elements in pairs(a.written) do add(chunk_name(a.id, c), elements) end
    elseif size[f] > 0 then
      add(field, text[f])
    elseif stored[f] and not cleared then
      gone[#gone + 1] = field
    end
  end
end
if its_owner ~= '' and change ~= '' then
  add('O', sub(change, 35))
elseif its_owner ~= owner then
  gone[#gone + 1] = 'O'
end
in_slices('HDEL', key, gone)
if metadata ~= '' then add('D', metadata) end
if is_new then
  if max_age > 0 then ends = created + max_age end
  sequence, watched = events_before(k.archive), watched_until(KEYS[6], ahead)
end
if ARGV[4] ~= '' then ttl = tonumber(ARGV[4]) end
if logged then sequence = sequence + 1 end
m = pack(META, format_of(its_owner, is_exclusive), life, version + 1, bytes, keys, created, now(ahead), ttl, ends, next_array, grace, sequence, watched)
  .. its_owner
add('M', m)
in_slices('HSET', key, puts)
local lives = lifetime(ttl, ends, ahead)
call('PEXPIRE', key, lives + grace * 1000 + ahead)
if owner ~= '' and owner ~= its_owner then
  -- remembered answers may name the old owner
  list_ended(key, id_of(key), life, owner, ahead, archive_ms)
  unlist_owned(key, id_of(key), owner)
end
if is_new then
  begin_life(k, now(ahead) + lives, ahead)
elseif ARGV[4] ~= '' then
  index_of(key).check_at(id_of(key), now(ahead) + lives, 'LT')
end
if logged and not (is_new and sequence == 1 and log_all == 0 and watched == 0
  and log_first_life(k.log, created, life, id_of(key), names(changed))) then
  local flags = not is_new and metadata ~= '' and 1 or 0
  log_event(k.log, is_new and CREATED or UPDATED, flags, now(ahead), version + 1, sequence, life,
    id_of(key), cleared and keys_before > NAMED_MAX and '!' or names(changed), ahead)
end
--+ append
local answer = {'W', 0, m, table.concat(results, ';')}
if ARGV[5] == 'd' then
  answer[5], answer[6], answer[7] = call('HGET', key, 'D') or '{}', lives, fmt('%.0f', now(ahead))
  answer[8] = its_owner ~= '' and call('HGET', key, 'O') or ''
end
local cost = 8 * n_results + popped_bytes + (answer[5] and #answer[5] + #answer[8] or 0)
for _, elements in ipairs(popped) do answer[#answer + 1] = elements end
if memory then remember(memory, answer, cost, lives, ahead) end
answer[#answer + 1] = written or 0
return answer
