-- Parts that are inserted into write.lua, before the parts from appends.lua, for operation lists that settle effects.
-- KEYS: as in appends.lua, then the effects. ARGV: as in appends.lua, then id, fence or empty, state, and result or error of
--   each effect to settle, and their number.
-- Reply: as in write.lua, then for each effect `t`, its state, and 1 if it was already settled with this value, else 0.
--   Refusals also as in settle_effect.lua, with the index of the effect.
--+ items
local effects_key, settles = table.remove(KEYS), {}
for j = #ARGV - 4 * tonumber(ARGV[#ARGV]), #ARGV - 1, 4 do
  settles[#settles + 1] = {id = ARGV[j], fence = ARGV[j + 1], state = ARGV[j + 2], text = ARGV[j + 3]}
end
for j = #ARGV, #ARGV - 4 * #settles, -1 do ARGV[j] = nil end
--+ plan
local effects, recorded = m and effects_of(effects_key, m), {}
local last_turn, numbers = unpack(call('HMGET', key, 'U', 'N'))
for j, s in ipairs(settles) do
  refusal, s.effect, s.repeated = settlement_refusal(effects, s, last_turn, numbers, ARGV[9], ahead, recorded)
  if refusal then
    refusal[4] = j - 1
    return refusal
  end
  recorded[s.id] = s.state .. s.text
  n_results = n_results + 1
  results[n_results] = 't' .. s.state .. (s.repeated and 1 or 0)
end
--+ append
for _, s in ipairs(settles) do
  if not s.repeated then settle_effect(effects, s.effect, s, (numbers_of(last_turn, numbers))) end
end
