-- A list of operations, done whole or not at all: all is worked out in tables first, limits are
-- judged on the result, and only then is anything written, since Redis does not roll back.
-- KEYS: 1 thread, 2 its remembered answers, 3 log, 4 archive, 5 archives, 6 deadlines, 7 watch.
-- ARGV: 1 policy: ahead, ttl, greatest age (0: none), most bytes, most keys, most bytes of metadata,
--         life for a new thread, its grace in seconds, how long an archive is kept, whether all
--         changes are logged
--       2 precondition: nothing, `E` exists, `V` version, `S` version and life, `L` life
--       3 idempotency key (16 bytes) and request (16 bytes), or nothing
--       4 new ttl or nothing   5 `d` when the answer describes the thread
--       6 new metadata or nothing   7 the metadata it was worked out from, or nothing
--       8 tombstone: nothing when it is heeded, `I` ignored, `A` heeded after that life
--       9... guards `E` field text, `N` field; then operations `S` field text,
--         `A` field length bytes chunks chunk..., `D` field, `C`,
--         `P` or `Q` field element window (or nothing; `Q` skips what is no array), `I` field integer
-- Reply: `W`, whether it was replayed, meta, answers as `place kind value;`..., and where it
-- describes: metadata, milliseconds to live, now. Or `R`, a refusal, and what belongs to it.
local key = KEYS[1]
local k = {thread = key, log = KEYS[3], archive = KEYS[4], archives = KEYS[5], deadlines = KEYS[6]}
local ahead, ttl, max_age, max_bytes, max_keys, max_metadata, life, grace, archive_ms, log_all = unpack_('>I6I5I6I4I4I4c8I4I6B', ARGV[1])
local given, memory = recall(KEYS[2], ARGV[3], ahead, 'W')
if given then return given end

-- the thread as it is -----------------------------------------------------------------------
local m, left, dead = living(key, ahead)
local is_tombstone = not m and not dead and left > ahead
if ARGV[8] == '' and is_tombstone or sub(ARGV[8], 1, 1) == 'A'
  and (is_tombstone or is_past(k.archive, m, sub(ARGV[8], 2), ahead)) then
  return {'R', 'thread_destroyed'}
end
local format, version, bytes, keys, ends, next_array, sequence, watched = 1, 0, 0, 0, 0, 0, 0, 0
local created, _
if m then
  if byte(m) ~= 1 then return redis.error_reply('ERR threadkeep: unknown format') end
  format, life, version, bytes, keys, created, _, ttl, ends, next_array, grace, sequence, watched = unpack_(META, m)
end
local is_new = not m
local its_life = version > 0 and life or '\0\0\0\0\0\0\0\0'
if not is_met(ARGV[2], version, its_life) then
  return {'R', 'version_mismatch', version, its_life}
end
local before = keys > 0 and bytes + 1 or 2

-- what the list makes of it -----------------------------------------------------------------
-- An entry: stored, whether the hash has the field; size, bytes of its JSON text (0: absent);
-- text or array, once they are known; count, elements of such a text, once they are; old, the array that is stored; dirty, whether it changes.
local entries, order, cleared = {}, {}, false
local results, n_results = {}, 0

local function load(f, want)
  local e = entries[f]
  if not e then
    e = {size = 0}
    if not cleared and not is_new then
      local size = call('HSTRLEN', key, f)
      if size > 0 then
        e.stored, e.size = true, size
        if want or size == HEADER_BYTES then
          local text = call('HGET', key, f)
          if byte(text) == 65 then
            e.old = unpack_array(text)
            local a = unpack_array(text)
            a.written = {}
            e.array, e.size = a, a.bytes + 1
          else
            e.text = text
          end
        end
      end
    end
    entries[f], order[#order + 1] = e, f
  elseif want and e.size > 0 and not e.text and not e.array then
    e.text = call('HGET', key, f)
  end
  return e
end

local function resize(f, e, size)
  if e.size > 0 then bytes, keys = bytes - (#f + e.size + 1), keys - 1 end
  if size > 0 then bytes, keys = bytes + (#f + size + 1), keys + 1 end
  e.size, e.dirty = size, true
end

local function put_text(f, e, text)
  resize(f, e, #text)
  e.text, e.array, e.count = text, nil, nil
end

local function put_array(f, e, a)
  resize(f, e, a.bytes + 1)
  e.text, e.array, e.count = nil, a, nil
end

local function chunk(a, n)
  return a.written[n] or call('HGET', key, chunk_name(a.id, n))
end

local function new_array()
  next_array = next_array + 1
  return {id = next_array - 1, head = 0, tail = 0, first = 0, next = 0, skip = 1, tail_bytes = 1,
    bytes = 0, written = {[0] = '0'}}
end

-- Gives a chunk of which more than half was cut a text without that.
local function rewrite_head(a, text)
  local ordinal = fmt('%.0f', a.first)
  text = ordinal .. sub(text, a.skip + 1)
  a.written[a.head], a.skip = text, #ordinal
  if a.head == a.tail then a.tail_bytes = #text end
end

local function append(a, v)
  local added = #v + 1
  if a.tail_bytes + added > CHUNK_BYTES and a.next > a.first then
    a.tail = a.tail + 1
    local text = fmt('%.0f', a.next) .. '\n' .. v
    a.written[a.tail], a.tail_bytes = text, #text
  else
    a.written[a.tail], a.tail_bytes = chunk(a, a.tail) .. '\n' .. v, a.tail_bytes + added
  end
  a.next, a.bytes = a.next + 1, a.bytes + added
end

local function drop_head(a, size, next_first)
  a.bytes, a.written[a.head] = a.bytes - (size - a.skip), nil
  a.head, a.first, a.skip = a.head + 1, next_first, #fmt('%.0f', next_first)
end

-- The ordinal of the chunk after the head; past all when that is a large one, which is not read.
local function next_ordinal(a)
  local text = a.written[a.head + 1]
  if not text then
    local name = chunk_name(a.id, a.head + 1)
    if call('HSTRLEN', key, name) > CHUNK_BYTES then return a.next + 1 end
    text = call('HGET', key, name)
  end
  return tonumber(sub(text, 1, find(text, '\n', 1, true) - 1))
end

local function keep_newest(a, window)
  local drop = a.next - a.first - window
  while drop > 0 do
    local text = a.written[a.head]
    local size = text and #text or call('HSTRLEN', key, chunk_name(a.id, a.head))
    if size > CHUNK_BYTES then
      -- it holds one element alone, which need not be read to be dropped
      drop_head(a, size, a.first + 1)
      drop = drop - 1
    elseif drop > 16 and a.head < a.tail and next_ordinal(a) <= a.first + drop then
      local following = next_ordinal(a)
      drop = drop - (following - a.first)
      drop_head(a, size, following)
    else
      text = text or chunk(a, a.head)
      local cut, dropped = a.skip, 0
      while cut and dropped < drop do
        local border = find(text, '\n', cut + 2, true)
        cut, dropped = border and border - 1, dropped + 1
      end
      if cut then
        a.bytes, a.first, a.skip = a.bytes - (cut - a.skip), a.first + dropped, cut
        if cut > CHUNK_BYTES / 2 then rewrite_head(a, text) end
      else
        drop_head(a, size, a.first + dropped)
      end
      drop = drop - dropped
    end
  end
end

-- The text of an array that is small enough for one field.
local function plain(a)
  local parts = {'['}
  for n = a.head, a.tail do
    local text = chunk(a, n)
    parts[#parts + 1] = sub(text, n == a.head and a.skip + 1 or find(text, '\n', 1, true))
  end
  return table.concat(parts)
end

local function push(op, f, v, window, skips)
  local e = load(f, true)
  local a, text = e.array, e.text
  if text and byte(text) ~= 91 then
    if skips then return nil, 's' end
    return {'R', 'not_an_array', op}
  end
  if window == 0 then
    put_text(f, e, '[]')
    return nil, 'l0'
  end
  if not a then
    local new = ((not text or text == '[]') and '[' or text) .. '\n' .. v
    if #new <= CHUNK_BYTES then
      local count = e.count and e.count + 1
      if not count then _, count = string.gsub(new, '\n', '\n') end
      if window and count > window then
        local cut = 1
        for _ = 0, count - window do cut = find(new, '\n', cut + 1, true) end
        new, count = '[' .. sub(new, cut), window
      end
      put_text(f, e, new)
      e.count = count
      return nil, 'l' .. count
    end
    a = new_array()
    if text and text ~= '[]' then
      local _, count = string.gsub(text, '\n', '\n')
      a.written[0], a.next, a.tail_bytes, a.bytes = '0' .. sub(text, 2), count, #text, #text - 1
    end
    put_array(f, e, a)
  end
  append(a, v)
  if window then keep_newest(a, window) end
  local count = a.next - a.first
  if a.bytes < CHUNK_BYTES / 2 then
    put_text(f, e, plain(a))
    e.count = count
  else
    put_array(f, e, a)
  end
  return nil, 'l' .. count
end

local function increment(op, f, by)
  local e = load(f, true)
  local old = e.size == 0 and '0' or e.text
  if not old or not find(old, '^%-?%d+$') then return {'R', 'not_an_integer', op} end
  if is_past_64_bits(old) then return {'R', 'integer_overflow', op} end
  if old == '-0' then old = '0' end
  local sum = add(old, by)
  if is_past_64_bits(sum) then return {'R', 'integer_overflow', op} end
  put_text(f, e, sum)
  return nil, sum
end

local i, n, op = 9, #ARGV, 0
while ARGV[i] == 'E' or ARGV[i] == 'N' do
  local e = load(ARGV[i + 1], true)
  if ARGV[i] == 'E' then
    if e.text ~= ARGV[i + 2] then return {'R', 'value_changed'} end
    i = i + 3
  else
    if e.text and byte(e.text) == 123 then return {'R', 'value_changed'} end
    i = i + 2
  end
end
local metadata = ARGV[6]
if metadata ~= '' then
  if ARGV[7] ~= '' and (m and call('HGET', key, 'D') or '{}') ~= ARGV[7] then
    return {'R', 'value_changed'}
  end
  if #metadata > max_metadata then return {'R', 'metadata_too_large', #metadata} end
end
while i <= n do
  local code, f, refusal, result = ARGV[i], ARGV[i + 1], nil, nil
  if code == 'S' then
    put_text(f, load(f), ARGV[i + 2])
    i = i + 3
  elseif code == 'P' or code == 'Q' then
    refusal, result = push(op, f, ARGV[i + 2], tonumber(ARGV[i + 3]), code == 'Q')
    i = i + 4
  elseif code == 'I' then
    refusal, result = increment(op, f, ARGV[i + 2])
    result = result and 'v' .. result
    i = i + 3
  elseif code == 'D' then
    local e = load(f)
    result = e.size > 0 and 'd1' or 'd0'
    resize(f, e, 0)
    e.text, e.array, e.count = nil, nil, nil
    i = i + 2
  elseif code == 'A' then
    local e, a, k = load(f), new_array(), tonumber(ARGV[i + 4])
    a.next, a.bytes, a.tail, a.tail_bytes = tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]), k - 1, #ARGV[i + 4 + k]
    for j = 1, k do a.written[j - 1] = ARGV[i + 4 + j] end
    put_array(f, e, a)
    i = i + 5 + k
  else
    cleared, entries, order, bytes, keys = true, {}, {}, 0, 0
    i = i + 1
  end
  if refusal then return refusal end
  if result then
    n_results = n_results + 1
    results[n_results] = op .. ' ' .. result
  end
  op = op + 1
end
local size = keys > 0 and bytes + 1 or 2
if size > max_bytes then return {'R', 'state_too_large', size, before} end
if keys > max_keys then return {'R', 'too_many_keys'} end

if next_array >= 4294967296 then return redis.error_reply('ERR threadkeep: too many arrays') end

-- and only now the writing ------------------------------------------------------------------
if is_new and left ~= -2 or cleared and m then settle(key) end
local logged, changed = is_new or log_all == 1 or watched > now(ahead), {}
if dead then
  end_life(k, dead, EXPIRED, ended_at(dead, left, ahead), ahead, archive_ms)
elseif is_new and left ~= -2 then
  call('UNLINK', key)
elseif cleared and m then
  if logged then changed = call('HKEYS', key) end
  local kept = call('HGET', key, 'D')
  call('UNLINK', key)
  if kept then call('HSET', key, 'D', kept) end
end
local puts, gone = {}, {}
for _, f in ipairs(order) do
  local e = entries[f]
  if e.dirty then
    if logged and (e.size > 0 or e.stored) then changed[#changed + 1] = f end
    local a, old = e.array, not cleared and e.old
    if old then
      local past = a and a.id == old.id and math.min(a.head - 1, old.tail) or old.tail
      for c = old.head, past do gone[#gone + 1] = chunk_name(old.id, c) end
    end
    if a then
      puts[#puts + 1] = f
      puts[#puts + 1] = pack_array(a)
      for c, text in pairs(a.written) do
        puts[#puts + 1] = chunk_name(a.id, c)
        puts[#puts + 1] = text
      end
    elseif e.size > 0 then
      puts[#puts + 1] = f
      puts[#puts + 1] = e.text
    elseif e.stored then
      gone[#gone + 1] = f
    end
  end
end
in_slices('HDEL', key, gone)
if metadata ~= '' then
  puts[#puts + 1] = 'D'
  puts[#puts + 1] = metadata
end
if is_new then
  created = now(ahead)
  if max_age > 0 then ends = created + max_age end
  sequence, watched = events_before(k.archive), watched_until(KEYS[7], ahead)
end
if ARGV[4] ~= '' then ttl = tonumber(ARGV[4]) end
if logged then sequence = sequence + 1 end
m = pack(META, format, life, version + 1, bytes, keys, created, now(ahead), ttl, ends, next_array, grace, sequence, watched)
puts[#puts + 1] = 'M'
puts[#puts + 1] = m
in_slices('HSET', key, puts)
local lives = lifetime(ttl, ends, ahead)
call('PEXPIRE', key, lives + grace * 1000 + ahead)
if is_new then
  begin_life(k, now(ahead) + lives, ahead)
elseif ARGV[4] ~= '' then
  call('ZADD', k.deadlines, 'LT', now(ahead) + lives, id_of(key))
end
if logged then
  local flags = not is_new and metadata ~= '' and 1 or 0
  log_event(k.log, is_new and CREATED or UPDATED, flags, now(ahead), version + 1, sequence, life,
    id_of(key), names(changed), ahead)
end
local answer = {'W', 0, m, table.concat(results, ';')}
if ARGV[5] == 'd' then
  answer[5], answer[6], answer[7] = call('HGET', key, 'D') or '{}', lives, fmt('%.0f', now(ahead))
end
local cost = 8 * n_results + (answer[5] and #answer[5] or 0)
if memory then remember(memory, answer, cost, lives, ahead) end
return answer
