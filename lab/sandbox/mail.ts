/** /mail. Sending only files the message under `sent`; nothing leaves the machine. */
import { z } from 'zod';
import { full, notFound, PAGING, pageOf, type Route, route } from './route.ts';
import { MAX_PER_KIND, type Mail, type World } from './world.ts';

const ListQuery = z.strictObject({ folder: z.enum(['inbox', 'sent', 'all']).default('inbox'), ...PAGING });

const ADDRESS = z.email().max(254);
const RECIPIENTS = z.union([ADDRESS, z.array(ADDRESS).min(1).max(50)], {
  error: 'must be an e-mail address, or a list of 1 to 50 of them',
});
const NewMail = z.strictObject({
  to: RECIPIENTS,
  cc: RECIPIENTS.optional(),
  subject: z
    .string()
    .min(1)
    .max(200)
    // A line break in a subject would allow header injection.
    .regex(/^[^\p{Cc}]*$/u, 'must be one line without control characters'),
  text: z.string().max(20_000),
});

/** The routes of mail. Lists are newest first; `folder` is `inbox` unless asked otherwise. */
export function mailRoutes(world: World): Route[] {
  return [
    route({
      method: 'GET',
      path: '/mail',
      query: ListQuery,
      handle({ query }) {
        const all = [...world.mail.values()].reverse();
        return pageOf(query.folder === 'all' ? all : all.filter((mail) => mail.folder === query.folder), query);
      },
    }),
    route({
      method: 'POST',
      path: '/mail',
      body: NewMail,
      handle({ body }) {
        if (world.mail.size >= MAX_PER_KIND) return full('messages', MAX_PER_KIND);
        const { subject, text } = body;
        const mail: Mail = {
          id: `msg_${world.next('mail')}`,
          folder: 'sent',
          from: 'agent@shop.example',
          to: [body.to].flat(),
          cc: [body.cc ?? []].flat(),
          subject,
          text,
          date: world.now(),
        };
        world.mail.set(mail.id, mail);
        return { status: 201, body: mail, headers: { location: `/mail/${mail.id}` } };
      },
    }),
    route({
      method: 'GET',
      path: '/mail/{id}',
      handle({ params: [id = ''] }) {
        const mail = world.mail.get(id);
        return mail ? { status: 200, body: mail } : notFound(`message ${JSON.stringify(id.slice(0, 40))}`);
      },
    }),
    route({
      method: 'DELETE',
      path: '/mail/{id}',
      handle({ params: [id = ''] }) {
        if (!world.mail.delete(id)) return notFound(`message ${JSON.stringify(id.slice(0, 40))}`);
        return { status: 204 };
      },
    }),
  ];
}
