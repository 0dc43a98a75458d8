// Sends through node-apn, and prints what that says came of it.
//
//   node apns_node.cjs FILE    FILE holds where to, whose key, and the pushes, each with its tokens
'use strict';

const { readFileSync } = require('node:fs');
const { Notification, Provider } = require('@parse/node-apn');

const plan = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const { hostname: address, port } = new URL(plan.url);
// That client has a deadline for each request, but none for all of its work.
setTimeout(() => {
  throw new Error('no end after a minute');
}, 60_000).unref();

async function main() {
  const provider = new Provider({
    address,
    port: Number(port),
    ca: plan.ca,
    token: plan.token,
    requestTimeout: 20_000,
    // It reads no Retry-After and would ask four times at once.
    connectionRetryLimit: 0,
  });
  const sending = plan.pushes.map(({ notification, tokens }) => provider.send(new Notification(notification), tokens));
  const told = await Promise.all(sending);
  provider.shutdown();
  console.log(JSON.stringify(told));
}

main();
