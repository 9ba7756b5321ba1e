import { z } from 'zod';
import { readInstallation } from '../../../admin/organisations/installation.ts';
import { instant, json } from '../../reply.ts';
import { route } from '../../route.ts';

/** GET /owner/installation: version and settings of the installation. It reveals nothing of any organisation. */
export const ownerInstallation = route({
  method: 'GET',
  path: '/owner/installation',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.installation.read',
  summary: 'The store, its last backup, and the broker processes that serve from it now.',
  answers: {
    200: {
      description: 'The longest running process first.',
      schema: z.object({
        store: z.enum(['sqlite', 'postgres']),
        last_backup_at: z.iso
          .datetime()
          .nullable()
          .describe(
            'when `agent-broker backup` made the last backup; null: it made none, and of other ways nothing is known',
          ),
        processes: z.array(
          z.object({
            id: z.string(),
            version: z.string().nullable().describe('null: a release that did not report it yet'),
            started_at: z.iso.datetime(),
            seen_at: z.iso.datetime().describe('its last heartbeat; after 20 seconds without one it is not listed'),
            answers: z.boolean().describe('whether this answer is from it'),
          }),
        ),
      }),
    },
  },
  errors: [],
  handle: async ({ services: { broker } }) => {
    const { store, lastBackup, processes } = await readInstallation(broker);
    return json(200, {
      store,
      last_backup_at: lastBackup === undefined ? null : instant(lastBackup),
      processes: processes.map(({ id, release, startedAt, seenAt, isThis }) => ({
        id,
        version: release,
        started_at: instant(startedAt),
        seen_at: instant(seenAt),
        answers: isThis,
      })),
    });
  },
});
