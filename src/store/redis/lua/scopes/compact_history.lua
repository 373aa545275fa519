-- Puts a few items in the place of the oldest ones of a thread's history. A stream takes no entries in its middle, so this
-- builds a new history next to the old one: the new items, and then the later ones, in as many calls as these need. The last
-- call makes the whole change: it checks the old history, which becomes a segment, and puts the new one in its place.
-- Items that come meanwhile are later ones. A removed one leaves the new history with one too many: then the number of items
-- up to the place is too small, and the caller begins again under another name.
-- KEYS: 1 scope, 2 history, 3 its ids, 4 its remembered answers, 5 thread.
-- ARGV: 1 ahead, the last place to replace, the number of items up to it, how long they are kept, and the most bytes of the
--         history and of all segments, packed   2 access   3 token of a turn, or nothing
--       4 idempotency key, or nothing   5 a name for the new history, the same in all calls
--       6... new items: id, value, fingerprint
-- Reply: `P` if there are more later items; or `C`, whether it was replayed, meta, number of the segment, how many made room
--        for it, and 0 if trim_segment.lua has to follow; or a refusal as in write_scope.lua.
local MOST_COPIED, COPIED_AT_ONCE, ABANDONED_MS, MOST_SEGMENTS = 100, 50, 60000, 16
-- No item has this id: the bytes of the copied items.
local COPIED_BYTES = ''
local ahead, through, count, keep, max_bytes = unpack_('>I6I6I6I6I6', ARGV[1])
local k = {scope = KEYS[1], history = KEYS[2], ids = KEYS[3], thread = KEYS[5]}
local thread, s, _, refusal = open_scope(k, ahead, false, ARGV[2])
if refusal then return refusal end
local given, memory = recall(KEYS[4], ARGV[4], ahead, 'C')
if given then return given end
if ARGV[3] ~= '' or thread and byte(thread) % 2 == 0 then
  refusal = turn_refusal(k.thread, thread, ARGV[3], ahead)
  if refusal then return refusal end
end
if thread and is_unbound(thread, ARGV[2]) then return {'R', 'no_thread'} end
if not s then return {'R', 'prefix_changed', 0} end
if s.flags % 2 == SEALED then return {'R', 'scope_ended'} end

-- the later items ---------------------------------------------------------------------------
local segments = living_segments(k, s, ahead)
local number, new = segments.last + 1, (#ARGV - 5) / 3
-- another life or another compaction begins again
local stream, ids = segments.keys(ARGV[5] .. hex(s.life) .. number)
local newest = call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
local at, copied = through, 0
if newest then at, copied = place_of(newest), call('XLEN', stream) - new end
local later, bytes, is_last = {}, 0, false
while #later < MOST_COPIED and bytes < MOST_TAKEN_BYTES and not is_last do
  local items = call('XRANGE', k.history, fmt('%.0f-0', at + 1), '+', 'COUNT', COPIED_AT_ONCE)
  for _, item in ipairs(items) do
    later[#later + 1], bytes, at = item, bytes + bytes_of(item), place_of(item)
  end
  is_last = #items < COPIED_AT_ONCE
end
bytes = bytes + tonumber(newest and call('HGET', ids, COPIED_BYTES) or 0)

-- what can refuse it ------------------------------------------------------------------------
if is_last then
  local before = math.max(0, s.items - copied - #later)
  if through >= s.next or before ~= count or new > before then
    call('UNLINK', stream, ids)
    return {'R', 'prefix_changed', before}
  end
end
local plan = {next = through - new + 1, ids = k.ids, originals = segments.ids(), gone = {}, new = {}, added = 0,
  known = {}, places = {}}
for i = 6, #ARGV, 3 do
  refusal = plan_item(plan, ARGV[i], ARGV[i + 1], ARGV[i + 2])
  if refusal then return refusal end
  if #plan.new < #plan.places then return {'R', 'item_id_reused', #plan.places - 1} end
end
if bytes + plan.added > max_bytes then return {'R', 'history_too_large', bytes + plan.added, s.history} end

-- the new history ---------------------------------------------------------------------------
settle(k.scope)
local function add(items)
  local fields = {COPIED_BYTES, fmt('%.0f', bytes)}
  for _, item in ipairs(items) do
    call('XADD', stream, fmt('%.0f-0', item.place), 't', item.at, 'i', item.id, 'v', item.value)
    fields[#fields + 1] = item.id
    fields[#fields + 1] = item.known
  end
  in_slices('HSET', ids, fields)
end
local copies, later_ids, entries = {}, {}, {}
for i, item in ipairs(later) do later_ids[i], entries[i] = item[2][4], item[1] end
local known = #later > 0 and call('HMGET', k.ids, unpack(later_ids)) or {}
for i, item in ipairs(later) do
  copies[i] = {place = place_of(item), at = item[2][2], id = item[2][4], value = item[2][6], known = known[i]}
end
if not newest then
  for _, item in ipairs(plan.new) do item.at = fmt('%.0f', now(ahead)) end
  add(plan.new)
end
add(copies)
if not is_last then
  call('PEXPIRE', stream, ABANDONED_MS)
  call('PEXPIRE', ids, ABANDONED_MS)
  return {'P'}
end

-- and only now the change -------------------------------------------------------------------
local kept = segments.list
local names = {}
for i, item in ipairs(plan.new) do names[i] = item.id end
local segment = {number = number, first = s.first, through = through, count = count, bytes = s.history - bytes,
  made = now(ahead), ends = now(ahead) + keep, ids = table.concat(names, ' ')}
local dropped, is_kept = 0, keep > 0 and segment.bytes <= max_bytes
if is_kept then
  local its_stream, its_ids = segments.keys(number)
  call('RENAME', k.history, its_stream)
  call('RENAME', k.ids, its_ids)
  in_slices('XDEL', its_stream, entries)
  in_slices('HDEL', its_ids, later_ids)
  call('PEXPIRE', its_stream, keep + ahead)
  call('PEXPIRE', its_ids, keep + ahead)
  kept[#kept + 1] = segment
  local sum = 0
  for _, g in ipairs(kept) do sum = sum + g.bytes end
  while #kept > MOST_SEGMENTS or sum > max_bytes do
    local oldest = table.remove(kept, 1)
    sum, dropped = sum - oldest.bytes, dropped + 1
    call('UNLINK', segments.keys(oldest.number))
  end
end
call('RENAME', stream, k.history)
call('RENAME', ids, k.ids)
call('HDEL', k.ids, COPIED_BYTES)
call('PERSIST', k.history)
call('PERSIST', k.ids)
s.first, s.history, s.items = plan.new[1].place, bytes + plan.added, copied + #later + new
s.version, s.updated = s.version + 1, now(ahead)
segments.last = number
segments.put()
call('HSET', k.scope, 'M', pack_scope(s))
local _, left = touch(k.thread, ahead, '')
local answer = {'C', 0, pack_scope(s), number, dropped, (copied == 0 or not is_kept) and 1 or 0}
if memory then remember(memory, answer, 8, left, ahead) end
return answer
