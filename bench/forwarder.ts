/**
 * The bare Express forwarder that the broker is compared with, in a process of its own: the same request, the same
 * upstream call, no governance.
 */

import type { AddressInfo } from 'node:net';
import express from 'express';
import { Pool } from 'undici';
import { present } from '../broker/runtime/present.ts';

const pool = new Pool(present(process.env.BENCH_UPSTREAM, 'BENCH_UPSTREAM'));
const app = express();
app.post('/v1/actions', express.json(), async (request, response) => {
  const { method, endpoint } = request.body;
  const answer = await pool.request({ method, path: endpoint });
  response.status(answer.statusCode).json({ data: await answer.body.json() });
});

const server = app.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
server.keepAliveTimeout = 300_000;
process.on('disconnect', () => process.exit(0));
process.on('SIGTERM', () => process.exit(0));
