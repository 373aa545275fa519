-- Parts of write.lua for a write that is the end of a response; those of appends.lua come behind them.
-- KEYS: last the response. ARGV: last as in_scope.lua has them.
-- Reply: that of write.lua; `J` and the answer of an earlier end; or a refusal.
--+ items
local response = table.remove(KEYS)
local step_args, channel = take_step(ARGV)
--+ step
local step_refusal, its_response = plan_step(response, key, m, step_args, ahead)
if step_refusal then return step_refusal end
--+ append
do_step(response, key, its_response, step_args, channel, ahead)
