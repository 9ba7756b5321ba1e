/** The 404 page for browsers at unknown addresses below the console or the documentation, with a link back. */
import type { Reply } from '../reply.ts';
import { textPage } from './sign-in-page.ts';

const START = {
  console: { to: '/console', text: 'To the console' },
  docs: { to: '/docs', text: 'To the documentation' },
} as const;

/** Returns the 404 page. */
export const noSuchPage = (section: keyof typeof START): Reply =>
  textPage(404, {
    title: 'There is no such page',
    text: 'The address may have been cut off on its way, or be one of another version of this broker.',
    link: START[section],
  });
