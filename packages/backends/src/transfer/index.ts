// Backups of stores, and transfers between them.
export { readBackup, writeBackup } from './backup-file.ts'
export { loadRecords, type OnTransfer } from './load.ts'
export { type StoreRecord, storeRecords, type TransferCounts } from './records.ts'
