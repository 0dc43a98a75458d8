// The worker of the BullMQ peer: one call to the provider for each job, over kept connections.
//
//   node worker.js REDIS_PORT CONCURRENCY http 127.0.0.1:PORT
//   node worker.js REDIS_PORT CONCURRENCY smtp 127.0.0.1:PORT CONNECTIONS
'use strict';

const { Worker } = require('bullmq');

const [port, concurrency, kind, sink, connections] = process.argv.slice(2);

function byHttp() {
  const { Pool } = require('undici');
  const pool = new Pool(`http://${sink}`, { connections: Number(concurrency), pipelining: 1 });
  const headers = { 'content-type': 'application/json' };
  return async (job) => {
    const body = JSON.stringify(job.data.content.webhook);
    const { statusCode, body: answer } = await pool.request({ path: '/now', method: 'POST', headers, body });
    await answer.dump();
    if (statusCode >= 300) throw new Error(`answered ${statusCode}`);
  };
}

function bySmtp() {
  const nodemailer = require('nodemailer');
  const [host, smtpPort] = sink.split(':');
  const mailer = nodemailer.createTransport({
    host,
    port: Number(smtpPort),
    secure: false,
    ignoreTLS: true,
    pool: true,
    maxConnections: Number(connections),
    maxMessages: Infinity,
    logger: false,
  });
  return async (job) => {
    const { to, content } = job.data;
    const { subject, text } = content;
    await mailer.sendMail({ from: 'Shop <shop@example.com>', to: to.email, subject, text });
  };
}

const worker = new Worker('notify', kind === 'smtp' ? bySmtp() : byHttp(), {
  connection: { host: '127.0.0.1', port: Number(port), enableAutoPipelining: true },
  concurrency: Number(concurrency),
});
// Failures show as messages that do not come.
worker.on('error', () => {});

process.once('SIGTERM', async () => {
  await worker.close();
  process.exit(0);
});

worker.waitUntilReady().then(() => console.log(`ready beside 127.0.0.1:${port}`));
