import { mcpServerSettings } from './mcp-settings.ts'
import { modelSettings } from './models-settings.ts'
import { DEFAULTS, leaves, PROFILE_DEFAULTS, PROFILES, SETTINGS, type Setting } from './schema.ts'

export interface SettingRow extends Setting {
  readonly default: unknown
  /** Profiles whose default is another one; undefined: the value must be given there. */
  readonly inProfile: Readonly<Record<string, unknown>>
}

/** Every setting, for the documentation: key, variable, default, what is allowed, what it is for. */
export function describeConfig(): SettingRow[] {
  return SETTINGS.map((it) => ({
    ...it,
    default: DEFAULTS[it.key],
    inProfile: Object.fromEntries(
      PROFILES.filter((profile) => it.key in PROFILE_DEFAULTS[profile]).map((profile) => [
        profile,
        PROFILE_DEFAULTS[profile][it.key],
      ]),
    ),
  }))
}

/** What a table of `[models]` may hold, for the documentation. */
export const describeModels = (): Pick<Setting, 'key' | 'description' | 'allowed'>[] =>
  leaves(modelSettings, 'models.NAME.')

/** What a table of `[mcp]` may hold. */
export const describeMcp = (): Pick<Setting, 'key' | 'description' | 'allowed'>[] =>
  leaves(mcpServerSettings, 'mcp.NAME.')
