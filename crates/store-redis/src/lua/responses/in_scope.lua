-- Added to write_scope.lua for writes that are a step of a response. KEYS: last the response.
-- ARGV, after those of write_scope.lua: channel, arguments of plan_step, number of these including the channel.
-- Reply: as in write_scope.lua; `J` and the outcome of an earlier step; or a refusal.
--+ keys
local response = table.remove(KEYS)
--+ step
local step_args, channel = take_step(ARGV)
local its_thread = thread or refused and living(k.thread, ahead)
local step_refusal, its_response = plan_step(response, k.thread, its_thread, step_args, ahead)
if step_refusal then return step_refusal end
--+ done
do_step(response, k.thread, its_response, step_args, channel, ahead)
