-- Reads a thread and its scope atomically.
-- KEYS: 1 thread, 2 scope, 3 history, 4 ids of the history, 5 checkpoints, 6 effects.
-- ARGV: 1 `ahead`, 2 `access`, 3 `u` to count as a use of the thread, 4 precondition, 5 turn token or empty, 6 maximum
--   number of history items, 7 their maximum bytes, 8 empty for no checkpoints, `*` for all, or the number of one
--   that must exist. Omits a history that exceeds limit 6 or 7, and checkpoints if their total size exceeds limit 7.
-- Reply: nil, a refusal, or meta, milliseconds to live, current time, fields of the thread, meta of the scope or nil, its
--   fields, items of the history or nil, index fields of the checkpoints that were requested, the fields of each
--   checkpoint or nil, and the fields of the effects.
local ahead = tonumber(ARGV[1])
local k = {thread = KEYS[1], scope = KEYS[2], history = KEYS[3], ids = KEYS[4]}
local m, left = living(k.thread, ahead)
local refusal = owner_refusal(m, ARGV[2])
if refusal then return refusal end
if ARGV[5] ~= '' then
  refusal = turn_refusal(k.thread, m, ARGV[5], ahead)
  if refusal then return refusal end
end
local version, life = 0, NO_LIFE
if m then life, version = unpack_(LIFE, m, LIFE_AT) end
if not is_met(ARGV[4], version, life) then return {'R', 'version_mismatch', version, life} end
if not m then return false end
local index, copies, held = {}, {}, 0
local has_checkpoints = ARGV[8] ~= '' and newest_of(KEYS[5], m)
if has_checkpoints and ARGV[8] == '*' then
  index = call('HGETALL', KEYS[5])
elseif ARGV[8] ~= '' and ARGV[8] ~= '*' then
  local entry = has_checkpoints and call('HGET', KEYS[5], ARGV[8])
  if not entry then return {'R', 'checkpoint_not_found'} end
  index = {ARGV[8], entry}
end
for i = 1, #index, 2 do
  if index[i] ~= 'L' then
    local _, _, its_bytes = unpack_(SAVED, index[i + 1])
    held = held + its_bytes
  end
end
if held > tonumber(ARGV[7]) then
  copies = false
else
  for i = 1, #index, 2 do
    if index[i] ~= 'L' then copies[#copies + 1] = call('HGETALL', KEYS[5] .. ':' .. index[i]) end
  end
end
if ARGV[3] == 'u' then
  touch(k.thread, ahead, '')
  left = call('PTTL', k.thread)
end
local _, ends, _, grace = unpack_(TIMES, m, TIMES_AT)
-- every read must report the same end to the millisecond: see read_scope.lua
local at, key_ends = now(ahead), redis.pcall('PEXPIRETIME', k.thread)
if type(key_ends) == 'number' then at = key_ends - left + ahead end
local lives = left - grace * 1000 - ahead
if ends > 0 then lives = math.min(lives, ends - at) end
local _, s = open_scope(k, ahead, false, '')
local items = false
if s and s.items <= tonumber(ARGV[6]) and s.history <= tonumber(ARGV[7]) then
  items = call('XRANGE', k.history, '-', '+')
end
return {m, lives, fmt('%.0f', at), call('HGETALL', k.thread), s and pack_scope(s) or false,
  s and fields_of(k.scope, s) or {}, items, index, copies, effects_of(KEYS[6], m) and call('HGETALL', KEYS[6]) or {}}
