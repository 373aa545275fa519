-- Reads one effect with its result or error, or effects before a position, newest first, without.
-- KEYS: 1 thread, 2 effects.
-- ARGV: 1 `ahead`, 2 `access`, 3 id or empty; for a list, 4 position or empty, 5 letter of a state or empty, 6 maximum number.
-- Reply: a refusal, or for each effect a reply as in effects.lua.
local key, ahead = KEYS[1], tonumber(ARGV[1])
local m, refusal = touch(key, ahead, ARGV[2])
if not m then return refusal or {} end
local g = effects_of(KEYS[2], m)
if not g then return {} end
local turn, numbers = unpack(call('HMGET', key, 'U', 'N'))
local number = numbers_of(turn, numbers)
if ARGV[3] ~= '' then
  local e = effect_of(g, ARGV[3])
  return e and {effect_reply(g, e, letter_of(e, turn, number))} or {}
end
local replies, position, from, wanted, most = {}, g.newest, tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6])
-- the effect at the position of a cursor may have been removed since
if from and call('HEXISTS', g.key, effect_field('n', from)) == 1 then position = from end
local seen = {}
while position ~= 0 and #replies < most do
  local packed = call('HGET', g.key, effect_field('n', position))
  local before, its_turn, _, state, generation = unpack_(SCANNED, packed, SCANNED_AT)
  if not from or position < from then
    seen.turn, seen.state = generation == g.generation and its_turn or 0, state
    local letter = letter_of(seen, turn, number)
    if wanted == '' or letter == wanted then
      replies[#replies + 1] = {'E', letter, pack_effect(g, unpack_effect(g, packed)), ''}
    end
  end
  position = before
end
return replies
