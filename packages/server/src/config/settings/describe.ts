import { mcpServerSettings } from './mcp-settings.ts'
import { modelSettings } from './models-settings.ts'
import { DEFAULTS, leaves, PROFILE_DEFAULTS, PROFILES, SETTINGS, type Setting } from './schema.ts'

export interface SettingRow extends Setting {
  readonly default: unknown
  /** Profiles with a different default; undefined: the setting is required there. */
  readonly inProfile: Readonly<Record<string, unknown>>
}

/** Every setting, for the documentation: key, variable, default, allowed values and description. */
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

/** The fields of a table of `[models]`, for the documentation. */
export const describeModels = (): Pick<Setting, 'key' | 'description' | 'allowed'>[] =>
  leaves(modelSettings, 'models.NAME.')

/** The fields of a table of `[mcp]`, for the documentation. */
export const describeMcp = (): Pick<Setting, 'key' | 'description' | 'allowed'>[] =>
  leaves(mcpServerSettings, 'mcp.NAME.')
