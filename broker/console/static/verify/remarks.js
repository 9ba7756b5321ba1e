// The remarks on a verified receipt log, the same in the command and on the page.

/**
 * Returns sentences on which receipts and checkpoints were checked, what cannot be verified, and what was deleted.
 *
 * @param {Pick<import('./log-export.js').LogVerdict, 'receipts' | 'areReceiptsChecked' | 'withoutReceipt' | 'purged' | 'uncompared'>} verdict the verdict on a log that verifies
 * @returns {string[]}
 */
export function remarksOf({ receipts, areReceiptsChecked, withoutReceipt, purged, uncompared }) {
  const ofRows = `${receipts} receipts are of these rows`;
  return [
    areReceiptsChecked
      ? `${ofRows}, and genuine.`
      : `${ofRows}; their signatures were not checked: the key set of receipts was not given (--receipt-keys).`,
    ...(withoutReceipt === 0
      ? []
      : [
          withoutReceipt === 1
            ? '1 event carries no receipt: its author is unknown.'
            : `${withoutReceipt} events carry no receipt: their authors are unknown.`,
        ]),
    ...(purged === 0 ? [] : [`${purged} rows were deleted since, after their retention time: the log says which.`]),
    ...(uncompared === 0
      ? []
      : [
          uncompared === 1
            ? '1 checkpoint was not compared: it is of fewer rows than precede this partial export.'
            : `${uncompared} checkpoints were not compared: they are of fewer rows than precede this partial export.`,
        ]),
  ];
}
