// Light or dark: as the system has it, or as the person chose.

import { effect, signal } from "@preact/signals";
import { recall, remember } from "./storage";

export type Theme = "auto" | "light" | "dark";
const system = matchMedia("(prefers-color-scheme: dark)");
const systemIsDark = signal(system.matches);
export const theme = signal<Theme>(recall<Theme>("theme", "auto"));

export const isDark = (): boolean => (theme.value === "auto" ? systemIsDark.value : theme.value === "dark");

export function toggleTheme(): void {
  theme.value = isDark() ? "light" : "dark";
}

export function startTheme(): void {
  system.addEventListener("change", () => (systemIsDark.value = system.matches));
  effect(() => {
    document.documentElement.dataset.theme = isDark() ? "dark" : "light";
    remember("theme", theme.value);
  });
}
