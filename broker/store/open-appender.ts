import type { Appender, AppendTo } from './appender.ts';
import { openPostgresAppender } from './postgres-appender.ts';
import { openSqliteAppender } from './sqlite-appender.ts';

/** Opens an appender with its own connections, on a store that is open. */
export function openAppender(to: AppendTo): Appender {
  return to.dialect === 'sqlite' ? openSqliteAppender(to.path) : openPostgresAppender(to);
}
