// What esbuild takes as a file of its own.
declare module "*.css";
