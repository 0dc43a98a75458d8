// The door of the BullMQ peer: POST /notify takes JSON, adds one job under the caller's key, and
// answers 202. Settings as for production: no log, keep-alive, finished jobs kept by count.
//
//   node door.js REDIS_PORT
'use strict';

const fastify = require('fastify');
const { Queue } = require('bullmq');

const connection = { host: '127.0.0.1', port: Number(process.argv[2]), enableAutoPipelining: true };
const queue = new Queue('notify', {
  connection,
  defaultJobOptions: {
    attempts: 10,
    backoff: { type: 'exponential', delay: 2000 },
    removeOnComplete: { count: 1000 },
    removeOnFail: { count: 1000 },
  },
});

const app = fastify({ logger: false, disableRequestLogging: true, keepAliveTimeout: 75000 });

app.post('/notify', async (request, reply) => {
  const jobId = request.headers['idempotency-key'].replaceAll('"', '');
  await queue.add('notify', request.body, { jobId });
  reply.code(202);
  return { id: jobId, state: 'queued' };
});

async function end() {
  await app.close();
  await queue.close();
  process.exit(0);
}
process.once('SIGTERM', end);

queue
  .waitUntilReady()
  .then(() => app.listen({ host: '127.0.0.1', port: 0 }))
  .then((address) => console.log(address));
