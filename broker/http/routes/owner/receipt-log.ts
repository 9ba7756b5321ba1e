/** The receipt log, for owners. */
import { z } from 'zod';
import { exportLog } from '../../../receipt-log/export-log.ts';
import { logStatus, proveConsistency } from '../../../receipt-log/read-log.ts';
import { Refusal } from '../../errors.ts';
import { ndjson } from '../../ndjson.ts';
import { wholeNumber } from '../../query.ts';
import { instant, json } from '../../reply.ts';
import { route } from '../../route.ts';

const MAX = 2 ** 48;

/** GET /owner/log */
export const ownerLog = route({
  method: 'GET',
  path: '/owner/log',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.log.read',
  summary: "The state of the organisation's receipt log.",
  answers: {
    200: {
      description: 'Its size, its newest checkpoint, and what waits for a place in it.',
      schema: z.object({
        origin: z.string().describe('its name, below which it is served'),
        keys: z.array(z.string()).describe('verifier keys, newest first'),
        size: z.int().describe('rows in it'),
        checkpoint: z
          .object({ size: z.int(), root: z.string().describe('base64'), at: z.iso.datetime() })
          .nullable()
          .describe('the newest one; null: there is none yet'),
        waiting: z.int().describe('final rows without a place yet'),
        waiting_since: z.iso
          .datetime()
          .nullable()
          .describe('when the call ended that waits longest; more than a minute is a fault'),
      }),
    },
  },
  errors: [],
  handle: async ({ services: { broker }, who }) => {
    const { checkpoint, waiting, ...log } = await logStatus(broker, who.organisationId);
    return json(200, {
      ...log,
      checkpoint: checkpoint && { ...checkpoint, at: instant(checkpoint.at) },
      waiting: waiting.rows,
      waiting_since: instant(waiting.since),
    });
  },
});

/** GET /owner/log/export */
export const exportOwnerLog = route({
  method: 'GET',
  path: '/owner/log/export',
  auth: 'owner',
  role: 'viewer',
  concurrency: { perAddress: 4, overall: 32 },
  capability: 'owner.log.export',
  summary: 'The receipt log up to its newest checkpoint, as a file that anybody can check offline.',
  description:
    'One JSON object a line: the checkpoint, then rows in the order of the log, after every 256 their hashes, and the hashes above them. `agent-broker verify export` checks it, and so does the page `/verify`.',
  query: z.object({
    first: wholeNumber(0, MAX)
      .default(0)
      .describe('go on from here: the index of the first row; the tile that it is in comes whole'),
  }),
  answers: {
    200: {
      description: 'The lines. An answer that breaks off does not verify.',
      schema: z.object({ type: z.enum(['log', 'row', 'tile']) }).loose(),
      type: 'application/x-ndjson',
    },
  },
  errors: ['invalid_request', 'too_many_streams'],
  handle: async (context) =>
    ndjson(context, exportLog(context.services.broker, context.who.organisationId, context.query.first)),
});

/** GET /owner/log/consistency */
export const ownerLogConsistency = route({
  method: 'GET',
  path: '/owner/log/consistency',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.log.consistency',
  summary: 'Proof that one tree of the receipt log is the beginning of another (RFC 9162 section 2.1.4).',
  query: z.object({
    first: wholeNumber(1, MAX)
      .optional()
      .describe('size of the smaller tree; that of the larger one unless said otherwise'),
    second: wholeNumber(1, MAX)
      .optional()
      .describe('size of the larger tree; that of the log now unless said otherwise'),
  }),
  answers: {
    200: {
      description: 'The proof.',
      schema: z.object({ first: z.int(), second: z.int(), proof: z.array(z.string()).describe('hashes in base64') }),
    },
  },
  errors: ['invalid_request'],
  handle: async ({ services: { broker }, who, query }) => {
    const { first, second } = query;
    const proven = await proveConsistency(broker, who.organisationId, { first, second });
    if ('size' in proven)
      throw new Refusal(
        'invalid_request',
        `first must not be above second, nor second above ${proven.size}, the size of the log.`,
      );
    return json(200, proven);
  },
});
