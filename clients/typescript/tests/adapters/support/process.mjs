const [module, name] = process.argv.slice(2);
const functions = await import(`../workers/${module}.mjs`);

process.once("message", async ({ number, argument }) => {
  try {
    process.send({ value: await functions[name](number, argument) });
  } catch (error) {
    process.send({ error: error.stack });
  }
});
process.send({ value: "ready" });
