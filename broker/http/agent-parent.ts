/** The parent of a child agent, for owners: the parent chose the name of the child, which may be that of another agent. */
import { z } from 'zod';

export const ParentNamed = z
  .object({ agent_id: z.string(), name: z.string() })
  .nullable()
  .describe('whose child it is, if any');

/** Returns the parent of a child; null when the agent is no child. */
export const parentNamed = ({
  parent_public_id,
  parent_name,
}: {
  parent_public_id: string | null;
  parent_name: string | null;
}): z.output<typeof ParentNamed> =>
  parent_public_id === null ? null : { agent_id: parent_public_id, name: parent_name ?? '' };
