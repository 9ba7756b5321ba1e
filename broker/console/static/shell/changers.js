import { useLoaded } from '/console/shell/loaded.js';

const INTERVAL_MS = 60_000;

/** Returns the names of those who can make changes or could before, by id: addresses of owners, and names of pipelines. @returns {Map<string, string>} */
export function useChangers() {
  const { owners = [], former = [] } = useLoaded('/owner/owners', INTERVAL_MS).answer ?? {};
  const pipelines = useLoaded('/owner/pipelines', INTERVAL_MS).answer?.pipelines ?? [];
  return new Map([
    ...[...former, ...owners].map(({ id, email }) => /** @type {const} */ ([id, email])),
    ...pipelines.map(({ id, name }) => /** @type {const} */ ([id, `the pipeline ${name}`])),
  ]);
}
