// What is to be said of a receipt log that verifies, beside that it does: the same in the command and on the page.

/**
 * What was checked of receipts, and what was deleted, in sentences.
 *
 * @param {Pick<import('./log-export.js').LogVerdict, 'receipts' | 'areReceiptsChecked' | 'purged'>} verdict of a log that verifies
 * @returns {string[]}
 */
export function toldOf({ receipts, areReceiptsChecked, purged }) {
  const ofRows = `${receipts} receipts are of these rows`;
  return [
    areReceiptsChecked
      ? `${ofRows}, and genuine.`
      : `${ofRows}; their signatures were not checked: the key set of receipts was not given (--receipt-keys).`,
    ...(purged === 0 ? [] : [`${purged} rows were deleted since, when their time was over: the log says which.`]),
  ];
}
