-- Replaces the oldest items of a thread's history with a few new items. Redis cannot insert entries into the middle of
-- a stream, so the old stream becomes a segment, and the new items and all later items go to a new stream. The cost
-- grows with the number of later items, not with the number of replaced items.
-- KEYS: 1 scope, 2 history, 3 ids of the history, 4 remembered answers, 5 thread.
-- ARGV: 1 packed: `ahead`, last position to replace, number of items up to that position, retention, maximum bytes of the
--   history and of all segments, maximum number of later items, maximum number of segments; 2 `access`, 3 turn token or
--   empty, 4 idempotency key or empty, then id, value and fingerprint of each new item.
-- Reply: `C`, replayed flag, meta, number of the segment, number of segments dropped; or a refusal as in write_scope.lua.
local ahead, through, count, keep, max_bytes, max_later, max_segments = unpack_('>I6I6I6I6I6I4I2', ARGV[1])
local k = {scope = KEYS[1], history = KEYS[2], ids = KEYS[3], thread = KEYS[5]}
local thread, s, _, refusal = open_scope(k, ahead, false, ARGV[2])
if refusal then return refusal end
local given, memory = recall(KEYS[4], ARGV[4], ahead, 'C')
if given then return given end
if ARGV[3] ~= '' or thread and byte(thread) % 2 == 0 then
  refusal = turn_refusal(k.thread, thread, ARGV[3], ahead)
  if refusal then return refusal end
end
if not thread or is_unbound(thread, ARGV[2]) then return {'R', 'no_thread'} end
if not s then return {'R', 'prefix_changed', 0} end
if s.flags % 2 == SEALED then return {'R', 'scope_ended'} end

local later = call('XRANGE', k.history, fmt('%.0f-0', through + 1), '+', 'COUNT', max_later + 1)
if #later > max_later then return {'R', 'too_many_later_items'} end
local segments, new, before = living_segments(k, s, ahead), (#ARGV - 4) / 3, s.items - #later
-- If another compaction has replaced the same items, `count` usually differs from the number of items. `is_same`
-- detects a compaction that added as many items as it replaced.
local is_same = through == segments.through and new == segments.new and count == new
if through >= s.next or before ~= count or new > before or is_same then return {'R', 'prefix_changed', before} end
local plan = {next = through - new + 1, ids = k.ids, originals = segments.ids(), gone = {}, new = {}, added = 0, known = {},
  positions = {}}
for i = 5, #ARGV, 3 do
  refusal = plan_item(plan, ARGV[i], ARGV[i + 1], ARGV[i + 2])
  if refusal then return refusal end
  if #plan.new < #plan.positions then return {'R', 'item_id_reused', #plan.positions - 1} end
end
local bytes, entries, ids, known = 0, {}, {}, {}
for i, item in ipairs(later) do entries[i], ids[i], bytes = item[1], item[2][4], bytes + bytes_of(item) end
if bytes + plan.added > max_bytes then return {'R', 'history_too_large', bytes + plan.added, s.history} end

settle(k.scope)
s.version, s.updated = s.version + 1, now(ahead)
-- if Redis is full, this first write fails before the script has changed anything
call('HSET', k.scope, 'M', pack_scope(s))
for from = 1, #ids, 1000 do
  local found = call('HMGET', k.ids, unpack(ids, from, math.min(from + 999, #ids)))
  for _, entry in ipairs(found) do known[#known + 1] = entry end
end
local names = {}
for i, item in ipairs(plan.new) do names[i] = item.id end
local segment = {number = segments.last + 1, first = s.first, through = through, count = count, bytes = s.history - bytes,
  made = now(ahead), ends = now(ahead) + keep, ids = table.concat(names, ' ')}
segments.last, segments.through, segments.new = segment.number, through, new
local is_kept, dropped = keep > 0 and segment.bytes <= max_bytes, 0
-- an older segment expires no later than the segment that contains its summary
segments.cut(through, is_kept and segment.ends or 0)
if is_kept then
  local its_stream, its_ids = segments.keys(segment.number)
  call('RENAME', k.history, its_stream)
  call('RENAME', k.ids, its_ids)
  in_slices('XDEL', its_stream, entries)
  in_slices('HDEL', its_ids, ids)
  call('PEXPIRE', its_stream, keep + ahead)
  call('PEXPIRE', its_ids, keep + ahead)
  dropped = segments.add(segment, max_segments, max_bytes)
else
  call('UNLINK', k.history, k.ids)
end
local fields = {}
local function add(position, at, id, value, its_known)
  call('XADD', k.history, position, 't', at, 'i', id, 'v', value)
  fields[#fields + 1], fields[#fields + 2] = id, its_known
end
for _, item in ipairs(plan.new) do
  add(fmt('%.0f-0', item.position), fmt('%.0f', now(ahead)), item.id, item.value, item.known)
end
for i, item in ipairs(later) do add(item[1], item[2][2], item[2][4], item[2][6], known[i]) end
in_slices('HSET', k.ids, fields)
s.first, s.history, s.items = plan.new[1].position, bytes + plan.added, #later + new
segments.put()
call('HSET', k.scope, 'M', pack_scope(s))
local _, left = touch(k.thread, ahead, '')
local answer = {'C', 0, pack_scope(s), segment.number, dropped}
if memory then remember(memory, answer, 8, left, ahead) end
return answer
