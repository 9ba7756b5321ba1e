import { useLoaded } from '/console/shell/use-loaded.js';

const EVERY_MS = 60_000;

/** Returns the names of those who can make changes, by id: addresses of owners, and names of pipelines. @returns {Map<string, string>} */
export function useChangers() {
  const owners = useLoaded('/owner/owners', EVERY_MS).answer?.owners ?? [];
  const pipelines = useLoaded('/owner/pipelines', EVERY_MS).answer?.pipelines ?? [];
  return new Map([
    ...owners.map(({ id, email }) => /** @type {const} */ ([id, email])),
    ...pipelines.map(({ id, name }) => /** @type {const} */ ([id, `the pipeline ${name}`])),
  ]);
}
